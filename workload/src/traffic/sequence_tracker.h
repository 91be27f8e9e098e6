/* SPDX-License-Identifier: BSD-3-Clause */
/* Tracks arrived sequence numbers: distinct, duplicated (RFC 5560), reordered (RFC 4737), late, missing.
 *
 * A bitmap remembers the last 2^20 sequence numbers below the next expected one (the horizon). It has twice
 * as many bits, so that whole words can be recycled while the horizon stays exact.
 */
#ifndef ICBENCH_SEQUENCE_TRACKER_H
#define ICBENCH_SEQUENCE_TRACKER_H

#include <stdint.h>

#define TRACKER_HORIZON (UINT64_C(1) << 20)

struct sequence_tracker;

enum tracker_verdict {
	TRACKER_NEW,       /* first copy, in order */
	TRACKER_REORDERED, /* first copy, after a higher sequence number */
	TRACKER_DUPLICATE, /* a further copy */
	TRACKER_LATE,      /* older than the horizon, so new and copy cannot be distinguished */
};

/* Returns NULL if memory is short. */
struct sequence_tracker *tracker_new(void);
void tracker_free(struct sequence_tracker *a);

/* Registers a callback for n consecutive sequence numbers that never arrived, called as soon as that is
 * certain. A single damaged frame can make n as large as the largest sequence number. */
typedef void (*tracker_gone)(void *context, uint64_t first, uint64_t n);
void tracker_watch(struct sequence_tracker *a, tracker_gone gone, void *context);

/* Ends the tracking: numbers below `end` (one more than the last sent) that have not arrived are gone as
 * well. */
void tracker_finish(struct sequence_tracker *a, uint64_t end);

/* Records the arrival of one frame. */
enum tracker_verdict tracker_one(struct sequence_tracker *a, uint64_t sequence);

/* Records n frames first, first+1, ... at once. Returns 0 and does nothing if `first` is below the next
 * expected number; then each frame goes through tracker_one(). */
int tracker_run(struct sequence_tracker *a, uint64_t first, unsigned n);

/* Returns one more than the highest sequence number seen; 0 before the first. */
uint64_t tracker_next(const struct sequence_tracker *a);

/* Returns how many numbers below tracker_next() have not arrived, counted from the bitmap. */
uint64_t tracker_gaps(const struct sequence_tracker *a);

#endif
