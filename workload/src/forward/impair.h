/* SPDX-License-Identifier: BSD-3-Clause */
/* Deliberate impairments by a forwarder: every N-th frame of a direction is dropped, sent after its
 * successor, or duplicated. Frames are counted, not chosen at random, so that a receiver's counters can be
 * predicted.
 *
 * The impairments apply in this order, and each counts the frames that reach it: of 10000 frames, drop 100
 * and duplicate 100 drop 100 and duplicate 99. Control frames (docs/reference/workload.md) are neither
 * counted nor impaired, and no frame before one is still held when it leaves. A sender's first frame and an
 * end mark both restart all counts, because either can be lost before it arrives here.
 */
#ifndef ICBENCH_IMPAIR_H
#define ICBENCH_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"

enum impair_kind {
	IMPAIR_DATA,
	IMPAIR_FIRST, /* data, the first frame of its sender: sequence number 0 */
	IMPAIR_CONTROL,
	IMPAIR_END_MARK,
};

/* Counts down to the next impaired frame; `every` 0: never. */
struct impair_turn {
	uint32_t every, left;
};

struct impair {
	struct impair_turn drop, reorder, duplicate;
	void *held; /* waits for its successor */
	uint64_t dropped, reordered, duplicated;
};

/* The result of a burst. A frame that is in `pass` twice is to be sent twice; its user takes another
 * reference to each frame of `duplicate`. */
struct impair_outcome {
	unsigned passed, dropped, duplicated, control;
	bool end_mark; /* the burst has an end mark */
	void *pass[2 * (IO_BURST_MAX + 1)];
	void *drop[IO_BURST_MAX];
	void *duplicate[IO_BURST_MAX + 1];
};

/* Each interval is 0 for never; reorder is not 1. */
void impair_init(struct impair *m, uint32_t drop, uint32_t reorder, uint32_t duplicate);

/* Whether there is any impairment; otherwise frames need not be inspected. */
bool impair_acts(const struct impair *m);

/* Restarts all counts. A held frame stays held. */
void impair_restart(struct impair *m);

/* Impairs a burst; n is at most IO_BURST_MAX. */
void impair_burst(struct impair *m, void *const frames[], const uint8_t kinds[], unsigned n,
        struct impair_outcome *out);

/* Returns the held frame, or NULL, and passes its ownership. */
void *impair_take_held(struct impair *m);

/* Classifies a frame of `bytes` without FCS for workloads with the port of `kept`. Sets its stream if it has
 * a stamp. Reads only within the frame. */
enum impair_kind impair_classify(uint8_t *l2, uint32_t bytes, struct frame_match *kept, uint16_t *stream);

#endif
