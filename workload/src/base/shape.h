/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from a frame's sequence number alone, so that both ends know it: how long the frame is. */
#ifndef ICBENCH_SHAPE_H
#define ICBENCH_SHAPE_H

#include <stdint.h>

#include "base/frame.h"

/* Frames of the longest cycle of a mix. */
#define SHAPE_CYCLE_MAX 1024u

struct shape {
	uint32_t cycle;                  /* frames until the sizes begin anew; 0: all have one size */
	uint16_t sizes[SHAPE_CYCLE_MAX]; /* in turn, bytes with FCS */
};

/* The packet size of a frame; `otherwise` of control frames, and where all have one. */
static inline uint32_t shape_size(
        const struct shape *s, uint16_t window, uint64_t sequence, uint32_t otherwise)
{
	return s->cycle && window != FRAME_WINDOW_CONTROL ? s->sizes[sequence % s->cycle] : otherwise;
}

/* Bytes of the first so many frames together. */
uint64_t shape_bytes(const struct shape *s, uint64_t frames, uint32_t otherwise);

#endif
