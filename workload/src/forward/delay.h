/* SPDX-License-Identifier: BSD-3-Clause */
/* A delay line: frames leave in the order of arrival, each at its time and never earlier. */
#ifndef ICBENCH_DELAY_H
#define ICBENCH_DELAY_H

#include <stdbool.h>
#include <stdint.h>

struct delay_entry {
	void *frame;
	uint64_t due; /* cycles */
};

struct delay {
	struct delay_entry *ring;
	uint32_t capacity, mask; /* mask + 1 is the ring's size, a power of two */
	uint64_t in, out;        /* frames so far */
	uint64_t late_max;       /* cycles: the greatest delay after a frame's time */
};

/* Allocates room for `capacity` frames. Returns false if memory is short. */
bool delay_init(struct delay *d, uint32_t capacity);
void delay_free(struct delay *d);

static inline uint32_t delay_held(const struct delay *d)
{
	return (uint32_t)(d->in - d->out);
}

/* Adds n frames, all due at `due`, which must not decrease from call to call. Returns how many had room. */
unsigned delay_push(struct delay *d, void *const frames[], unsigned n, uint64_t due);

/* Removes up to n frames that are due, oldest first. Returns how many. */
unsigned delay_pop(struct delay *d, uint64_t now, void *frames[], unsigned n);

/* Removes up to n frames whether due or not, for the end. */
unsigned delay_flush(struct delay *d, void *frames[], unsigned n);

#endif
