/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from a frame's sequence number alone, so that both ends know it: how long the frame is, and to
 * which flow it belongs.
 */
#ifndef ICBENCH_SHAPE_H
#define ICBENCH_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"

/* Frames of the longest cycle of a mix. */
#define SHAPE_CYCLE_MAX 1024u
#define SHAPE_FLOWS_MAX 1000000u
/* Flows that are all new differ by the low bits of 100.64.0.0/10, then by their port. */
#define SHAPE_NEW_ADDRESS_BITS 22u
/* Source ports from SHAPE_PORT_FIRST on. */
#define SHAPE_PORT_FIRST 1024u
#define SHAPE_PORT_FLOWS_MAX (65536u - SHAPE_PORT_FIRST)

/* Where frames of one flow differ from those of another: all are the sender's. */
enum shape_field {
	SHAPE_ADDRESSES,
	SHAPE_PORTS,
	SHAPE_MACS,
	SHAPE_NEW /* addresses, then ports: each frame is a flow of its own, and there are UINT32_MAX */
};

/* A column of Walker's alias method: its own flow below the limit (of 2^32), else the other one. */
struct shape_column {
	uint32_t limit, other;
};

struct shape {
	uint32_t cycle;                  /* frames until the sizes begin anew; 0: all have one size */
	uint16_t sizes[SHAPE_CYCLE_MAX]; /* in turn, bytes with FCS */
	uint32_t flows;                  /* 0 and 1: a single one */
	enum shape_field field;
	bool zipf;                          /* flow k, from 0, has a share in proportion to 1 / (k + 1) */
	uint64_t turn;                      /* frames after which the flows move on by one; 0: never */
	const struct shape_column *columns; /* of Zipf's law, one a flow */
};

/* What the options imply. False if memory is short. */
bool shape_prepare(struct shape *s);
void shape_free(struct shape *s);

static inline bool shape_has_flows(const struct shape *s)
{
	return s->flows > 1;
}

/* Whether flows have several frames each, of which something can be told. */
static inline bool shape_flows_recur(const struct shape *s)
{
	return shape_has_flows(s) && s->field != SHAPE_NEW;
}

/* The packet size of a frame; `otherwise` of control frames, and where all have one. */
static inline uint32_t shape_size(
        const struct shape *s, uint16_t window, uint64_t sequence, uint32_t otherwise)
{
	return s->cycle && window != FRAME_WINDOW_CONTROL ? s->sizes[sequence % s->cycle] : otherwise;
}

/* A place in the sequence of flows, which moves on without a division. */
struct shape_place {
	uint64_t sequence, turn_left;
	uint32_t flow; /* of a uniform sequence */
};

static inline struct shape_place shape_place(const struct shape *s, uint64_t sequence)
{
	uint64_t turns = s->turn ? sequence / s->turn : 0;

	return (struct shape_place){.sequence = sequence,
	        .turn_left = s->turn ? s->turn - sequence % s->turn : UINT64_MAX,
	        .flow = s->zipf ? 0 : (uint32_t)((sequence + turns) % s->flows)};
}

/* The flow at the place, from 0; moves on to the next frame. With Zipf's law frame n takes the n-th number of
 * a golden-ratio sequence, whose parts are spread as evenly as the whole: a flow has its share soon. */
static inline uint32_t shape_next_flow(const struct shape *s, struct shape_place *at)
{
	uint32_t flow = at->flow;

	if (s->zipf) {
		unsigned __int128 x =
		        (unsigned __int128)(at->sequence++ * UINT64_C(0x9e3779b97f4a7c15)) * s->flows;
		const struct shape_column *column = &s->columns[(uint32_t)(x >> 64)];

		return (uint32_t)((uint64_t)x >> 32) < column->limit ? (uint32_t)(x >> 64) : column->other;
	}
	at->flow = flow + 1 == s->flows ? 0 : flow + 1;
	if (__builtin_expect(--at->turn_left == 0, 0)) {
		at->turn_left = s->turn;
		at->flow = at->flow + 1 == s->flows ? 0 : at->flow + 1;
	}
	return flow;
}

/* The flow of one frame. */
static inline uint32_t shape_flow(const struct shape *s, uint64_t sequence)
{
	struct shape_place at;

	if (!shape_has_flows(s))
		return 0;
	at = shape_place(s, sequence);
	return shape_next_flow(s, &at);
}

/* Bytes of the first so many frames together. */
uint64_t shape_bytes(const struct shape *s, uint64_t frames, uint32_t otherwise);

#endif
