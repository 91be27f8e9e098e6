/* SPDX-License-Identifier: BSD-3-Clause */
/* What a forwarder does to frames on purpose: each N-th one of a direction is dropped, sent behind its
 * successor, or doubled. By counting, never by chance, so that a receiver's counters can be foretold.
 *
 * The three stand in this order, and each counts the frames that reach it: of 10000 frames, drop 100 and
 * duplicate 100 drop 100 and double 99. Control frames (docs/reference/workload.md) are neither counted nor
 * struck, and none of the frames before one is still held when it leaves. A sender's first frame and an end
 * mark begin all counts anew: the one can be lost before it comes here, the other too.
 */
#ifndef ICBENCH_IMPAIR_H
#define ICBENCH_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"

enum impair_kind {
	IMPAIR_DATA,
	IMPAIR_FIRST, /* data, and the first of its sender: sequence number 0 */
	IMPAIR_CONTROL,
	IMPAIR_END_MARK,
};

/* Counts down to the next frame to strike; `every` 0: never. */
struct impair_turn {
	uint32_t every, left;
};

struct impair {
	struct impair_turn drop, reorder, duplicate;
	void *held; /* waits for its successor */
	uint64_t dropped, reordered, duplicated;
};

/* What becomes of a burst. A frame that stands in `pass` twice is to be sent twice: its user takes one more
 * reference to each of the `duplicates`. */
struct impair_outcome {
	unsigned passed, dropped, duplicated, control;
	bool end_mark; /* there was one */
	void *pass[2 * (IO_BURST_MAX + 1)];
	void *drop[IO_BURST_MAX];
	void *duplicate[IO_BURST_MAX + 1];
};

/* Each is 0 for never; reorder is not 1. */
void impair_init(struct impair *m, uint32_t drop, uint32_t reorder, uint32_t duplicate);

/* Whether anything is to be done at all: else frames need not be looked at. */
bool impair_acts(const struct impair *m);

/* Begins all counts anew. A held frame stays held. */
void impair_restart(struct impair *m);

/* n is at most IO_BURST_MAX. */
void impair_burst(struct impair *m, void *const frames[], const uint8_t kinds[], unsigned n,
        struct impair_outcome *out);

/* The held frame, or NULL; it is nobody's then. */
void *impair_take_held(struct impair *m);

/* What a frame of `bytes` (without FCS) is, to workloads that use the port of `kept`, and its stream if it is
 * not just data. Reads within it only. */
enum impair_kind impair_classify(uint8_t *l2, uint32_t bytes, struct frame_match *kept, uint16_t *stream);

#endif
