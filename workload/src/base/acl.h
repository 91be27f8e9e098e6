/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that a function in the path denies: both ends know them by a frame's sequence number, the function by
 * what its access list has for them.
 */
#ifndef ICBENCH_ACL_H
#define ICBENCH_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/flow_pattern.h"

/* Longest text of --denied, and the digits of a place behind it. */
#define ACL_TEXT_MAX 64u
#define ACL_DIGITS 5u
#define ACL_PLACES_MAX 50000u

/* The list has so many places, and a share of them, spread evenly, is denied. A flow's place is its number
 * modulo theirs; of a single flow each frame counts as one. */
struct acl {
	uint32_t percent, places; /* percent 0: no flow is denied */
	uint16_t port;            /* of the first place: each has a port; 0: by text */
	const char *text;         /* in the payload behind the stamp, the place's number behind it; or NULL */
};

static inline bool acl_denies_place(const struct acl *d, uint32_t place)
{
	return (place + 1) * d->percent / 100 > place * d->percent / 100;
}

/* Counts denied frames from the first one on. */
struct acl_walk {
	struct pattern_place at;
	uint64_t sequence, denied; /* the next frame, and how many before it are denied */
};

/* The number by which a frame has its place, of frames one after the other from that sequence number on. */
static inline struct pattern_place acl_start(const struct flow_pattern *s, uint64_t sequence)
{
	return pattern_has_flows(s) ? pattern_place(s, sequence)
	                            : (struct pattern_place){.sequence = sequence};
}

static inline uint32_t acl_next_place(
        const struct acl *d, const struct flow_pattern *s, struct pattern_place *at)
{
	return pattern_has_flows(s) ? pattern_next_flow(s, at) % d->places
	                            : (uint32_t)(at->sequence++ % d->places);
}

/* Whether the frame of that number is of a denied flow. */
static inline bool acl_denies_frame(const struct acl *d, const struct flow_pattern *s, uint64_t sequence)
{
	struct pattern_place at = acl_start(s, sequence);

	return acl_denies_place(d, acl_next_place(d, s, &at));
}

/* Moves on to the frame `end`, unless it is there already. A walk begins with all zero. */
void acl_walk(struct acl_walk *w, const struct acl *d, const struct flow_pattern *s, uint64_t end);

#endif
