/* SPDX-License-Identifier: BSD-3-Clause */
/* A delay line: frames leave in the order in which they came, each at its own time and never before. */
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
	uint32_t capacity, mask; /* mask + 1: the ring's size, a power of two */
	uint64_t in, out;        /* frames so far */
	uint64_t late_max;       /* cycles by which the latest one left after its time */
};

/* Room for `capacity` frames; false if memory is short. */
bool delay_init(struct delay *d, uint32_t capacity);
void delay_free(struct delay *d);

static inline uint32_t delay_held(const struct delay *d)
{
	return (uint32_t)(d->in - d->out);
}

/* Puts n frames in, all due then; `due` must not go back from call to call. Returns how many had room. */
unsigned delay_push(struct delay *d, void *const frames[], unsigned n, uint64_t due);

/* Up to n frames whose time has come, oldest first; returns how many. */
unsigned delay_pop(struct delay *d, uint64_t now, void *frames[], unsigned n);

/* Up to n frames whether due or not, for the end. */
unsigned delay_flush(struct delay *d, void *frames[], unsigned n);

#endif
