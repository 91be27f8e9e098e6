/* SPDX-License-Identifier: BSD-3-Clause */
#include "forward/delay.h"

#include <stdlib.h>

bool delay_init(struct delay *d, uint32_t capacity)
{
	uint32_t size = 1;

	while (size < capacity)
		size *= 2;
	*d = (struct delay){.capacity = capacity, .mask = size - 1};
	d->ring = calloc(size, sizeof(*d->ring));
	return d->ring != NULL;
}

void delay_free(struct delay *d)
{
	free(d->ring);
	d->ring = NULL;
}

unsigned delay_push(struct delay *d, void *const frames[], unsigned n, uint64_t due)
{
	uint32_t room = d->capacity - delay_held(d);

	if (n > room)
		n = room;
	for (unsigned i = 0; i < n; i++)
		d->ring[d->in++ & d->mask] = (struct delay_entry){frames[i], due};
	return n;
}

/* Compares cycle counters by their distance, so that a wrap does no harm. */
static bool is_due(const struct delay *d, uint64_t now)
{
	return (int64_t)(now - d->ring[d->out & d->mask].due) >= 0;
}

unsigned delay_pop(struct delay *d, uint64_t now, void *frames[], unsigned n)
{
	unsigned got = 0;

	if (d->in == d->out || !is_due(d, now))
		return 0;
	if (now - d->ring[d->out & d->mask].due > d->late_max)
		d->late_max = now - d->ring[d->out & d->mask].due;
	while (got < n && d->in != d->out && is_due(d, now))
		frames[got++] = d->ring[d->out++ & d->mask].frame;
	return got;
}

unsigned delay_flush(struct delay *d, void *frames[], unsigned n)
{
	unsigned got = 0;

	while (got < n && d->in != d->out)
		frames[got++] = d->ring[d->out++ & d->mask].frame;
	return got;
}
