/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that a function in the path denies: both ends know them by a frame's sequence number, the function by
 * what its access list has for them.
 */
#ifndef ICBENCH_DENIED_H
#define ICBENCH_DENIED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shape.h"

/* Longest text of --denied, and the digits of a place behind it. */
#define DENIED_TEXT_MAX 64u
#define DENIED_DIGITS 5u
#define DENIED_PLACES_MAX 50000u

/* The list has so many places, and a share of them, spread evenly, is denied. A flow's place is its number
 * modulo theirs; of a single flow each frame counts as one. */
struct denied {
	uint32_t percent, places; /* percent 0: no flow is denied */
	uint16_t port;            /* of the first place: each has a port; 0: by text */
	const char *text;         /* in the payload behind the stamp, the place's number behind it; or NULL */
};

static inline bool denied_place(const struct denied *d, uint32_t place)
{
	return (place + 1) * d->percent / 100 > place * d->percent / 100;
}

/* Counts denied frames from the first one on. */
struct denied_walk {
	struct shape_place at;
	uint64_t sequence, denied; /* the next frame, and how many before it are denied */
};

/* The number by which a frame has its place, of frames one after the other from that sequence number on. */
static inline struct shape_place denied_start(const struct shape *s, uint64_t sequence)
{
	return shape_has_flows(s) ? shape_place(s, sequence) : (struct shape_place){.sequence = sequence};
}

static inline uint32_t denied_next_place(
        const struct denied *d, const struct shape *s, struct shape_place *at)
{
	return shape_has_flows(s) ? shape_next_flow(s, at) % d->places
	                          : (uint32_t)(at->sequence++ % d->places);
}

/* Whether the frame of that number is of a denied flow. */
static inline bool denied_frame(const struct denied *d, const struct shape *s, uint64_t sequence)
{
	struct shape_place at = denied_start(s, sequence);

	return denied_place(d, denied_next_place(d, s, &at));
}

/* Moves on to the frame `end`, unless it is there already. A walk begins with all zero. */
void denied_walk(struct denied_walk *w, const struct denied *d, const struct shape *s, uint64_t end);

#endif
