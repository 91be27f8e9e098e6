/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that the access list (ACL) of a function in the path drops. Both ends recognize their frames by
 * sequence number; the function recognizes them by the port or text that its list matches.
 */
#ifndef ICBENCH_ACL_H
#define ICBENCH_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/flow_pattern.h"

/* The longest text of --acl-drops, and the number of digits that follow it. */
#define ACL_TEXT_MAX 64u
#define ACL_DIGITS 5u
#define ACL_PLACES_MAX 50000u

/* The list has `places` entries, and `percent` of them, evenly spread, drop frames. The entry of a flow is
 * the flow's number modulo `places`. With a single flow, each frame counts as a flow. */
struct acl {
	uint32_t percent, places; /* percent 0: nothing is dropped */
	uint16_t port;    /* matched by the first entry, each following entry has the next port; 0: matched by
	                     text */
	const char *text; /* follows the stamp in the payload, and the entry's number follows it; or NULL */
};

static inline bool acl_denies_place(const struct acl *d, uint32_t place)
{
	return (place + 1) * d->percent / 100 > place * d->percent / 100;
}

/* Counts dropped frames from the first frame on. */
struct acl_walk {
	struct pattern_place at;
	uint64_t sequence, acl_drops; /* the next frame; the number of dropped frames before it */
};

/* Returns the place at a sequence number, for acl_next_place(). */
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

/* Whether the list drops the frame with that sequence number. */
static inline bool acl_denies_frame(const struct acl *d, const struct flow_pattern *s, uint64_t sequence)
{
	struct pattern_place at = acl_start(s, sequence);

	return acl_denies_place(d, acl_next_place(d, s, &at));
}

/* Counts up to the frame `end`; does nothing if the walk has passed it. A walk starts with all fields
 * zero. */
void acl_walk(struct acl_walk *w, const struct acl *d, const struct flow_pattern *s, uint64_t end);

#endif
