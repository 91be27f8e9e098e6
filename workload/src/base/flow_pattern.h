/* SPDX-License-Identifier: BSD-3-Clause */
/* What a frame's sequence number determines, so that both ends know it: the frame's length and its flow. */
#ifndef ICBENCH_FLOW_PATTERN_H
#define ICBENCH_FLOW_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"

/* The longest cycle of a mix, in frames. */
#define PATTERN_CYCLE_MAX 1024u
#define PATTERN_FLOWS_MAX 1000000u
/* Flows of one frame each differ in the low bits of 100.64.0.0/10, then in their port. */
#define PATTERN_NEW_ADDRESS_BITS 22u
/* The first source port, and how many flows ports can distinguish. */
#define PATTERN_PORT_FIRST 1024u
#define PATTERN_PORT_FLOWS_MAX (65536u - PATTERN_PORT_FIRST)

/* What differs between flows: a field of the sender. */
enum pattern_field {
	PATTERN_ADDRESSES,
	PATTERN_PORTS,
	PATTERN_MACS,
	PATTERN_NEW /* addresses, then ports: each frame is a new flow; the number of flows is UINT32_MAX */
};

/* A column of Walker's alias method: its own flow below the limit (of 2^32), otherwise the other flow. */
struct pattern_column {
	uint32_t limit, other;
};

struct flow_pattern {
	uint32_t cycle;                    /* frames until the sizes repeat; 0: all frames have one size */
	uint16_t sizes[PATTERN_CYCLE_MAX]; /* in turn, bytes with FCS */
	uint32_t flows;                    /* 0 and 1: a single flow */
	enum pattern_field field;
	bool zipf;                            /* flow k, from 0, has a share proportional to 1 / (k + 1) */
	uint64_t turn;                        /* frames after which the flows shift by one; 0: never */
	const struct pattern_column *columns; /* of Zipf's law, one for each flow */
};

/* Routes of the routers in the path, over which the flows of a sender are dealt out. */
struct pattern_routes {
	uint32_t first, count; /* numbers of the routes; count 0: frames go to the peer's address */
};

#define PATTERN_ROUTES_MAX 1000000u

/* Returns the number of the route that a flow's frames take. */
static inline uint32_t pattern_route(const struct pattern_routes *r, uint32_t flow)
{
	return r->first + (flow < r->count ? flow : flow % r->count);
}

/* Computes what the options imply. Returns false if memory is short. */
bool pattern_prepare(struct flow_pattern *s);
void pattern_free(struct flow_pattern *s);

static inline bool pattern_has_flows(const struct flow_pattern *s)
{
	return s->flows > 1;
}

/* Whether flows have several frames each, so that loss and order of a flow can be reported. */
static inline bool pattern_flows_recur(const struct flow_pattern *s)
{
	return pattern_has_flows(s) && s->field != PATTERN_NEW;
}

/* Returns the packet size of a frame; `otherwise` for control frames and if all frames have one size. */
static inline uint32_t pattern_size(
        const struct flow_pattern *s, uint16_t window, uint64_t sequence, uint32_t otherwise)
{
	return s->cycle && window != FRAME_WINDOW_CONTROL ? s->sizes[sequence % s->cycle] : otherwise;
}

/* A place in the sequence of flows, which advances without a division. */
struct pattern_place {
	uint64_t sequence, turn_left;
	uint32_t flow; /* without Zipf's law */
};

static inline struct pattern_place pattern_place(const struct flow_pattern *s, uint64_t sequence)
{
	uint64_t turns = s->turn ? sequence / s->turn : 0;

	return (struct pattern_place){.sequence = sequence,
	        .turn_left = s->turn ? s->turn - sequence % s->turn : UINT64_MAX,
	        .flow = s->zipf ? 0 : (uint32_t)((sequence + turns) % s->flows)};
}

/* Returns the flow at the place, from 0, and advances to the next frame. With Zipf's law, frame n takes the
 * n-th number of a golden-ratio sequence. Any part of that sequence is spread as evenly as the whole, so a
 * flow soon has its share. */
static inline uint32_t pattern_next_flow(const struct flow_pattern *s, struct pattern_place *at)
{
	uint32_t flow = at->flow;

	if (s->zipf) {
		unsigned __int128 x =
		        (unsigned __int128)(at->sequence++ * UINT64_C(0x9e3779b97f4a7c15)) * s->flows;
		const struct pattern_column *column = &s->columns[(uint32_t)(x >> 64)];

		return (uint32_t)((uint64_t)x >> 32) < column->limit ? (uint32_t)(x >> 64) : column->other;
	}
	at->flow = flow + 1 == s->flows ? 0 : flow + 1;
	if (__builtin_expect(--at->turn_left == 0, 0)) {
		at->turn_left = s->turn;
		at->flow = at->flow + 1 == s->flows ? 0 : at->flow + 1;
	}
	return flow;
}

/* Returns the flow of one frame. */
static inline uint32_t pattern_flow(const struct flow_pattern *s, uint64_t sequence)
{
	struct pattern_place at;

	if (!pattern_has_flows(s))
		return 0;
	at = pattern_place(s, sequence);
	return pattern_next_flow(s, &at);
}

/* Returns the shortest packet size; `otherwise` if all frames have one. */
uint32_t pattern_shortest(const struct flow_pattern *s, uint32_t otherwise);

/* Returns the bytes of the first `frames` frames together. */
uint64_t pattern_bytes(const struct flow_pattern *s, uint64_t frames, uint32_t otherwise);

#endif
