/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrived, by sequence number: distinct, duplicated (RFC 5560), reordered (RFC 4737), late, missing.
 *
 * A bitmap remembers the last 2^20 sequence numbers below the next expected one (the horizon). It has twice
 * as many bits, so that words can be recycled whole while the horizon stays exact.
 */
#ifndef ICBENCH_SEQUENCE_TRACKER_H
#define ICBENCH_SEQUENCE_TRACKER_H

#include <stdint.h>

#define TRACKER_HORIZON (UINT64_C(1) << 20)

struct sequence_tracker;

enum tracker_verdict {
	TRACKER_NEW,       /* first copy, in order */
	TRACKER_REORDERED, /* first copy, behind a higher sequence number */
	TRACKER_DUPLICATE, /* a further copy */
	TRACKER_LATE,      /* older than the horizon: new or a copy, nobody can tell */
};

/* NULL if memory is short. */
struct sequence_tracker *tracker_new(void);
void tracker_free(struct sequence_tracker *a);

/* Has `gone` called for n sequence numbers in a row that never came, once that is sure. A single frame can
 * make n as large as the largest sequence number. */
typedef void (*tracker_gone)(void *context, uint64_t first, uint64_t n);
void tracker_watch(struct sequence_tracker *a, tracker_gone gone, void *context);

/* At the end: those below `end` (one more than the last sent) that have not come are gone, too. */
void tracker_finish(struct sequence_tracker *a, uint64_t end);

/* One frame with that sequence number has arrived. */
enum tracker_verdict tracker_one(struct sequence_tracker *a, uint64_t sequence);

/* n frames first, first+1, ... have arrived, all in order: true if first is the next expected number or
 * beyond it, and everything is done; else nothing is done and each must go through tracker_one(). */
int tracker_run(struct sequence_tracker *a, uint64_t first, unsigned n);

/* One more than the highest sequence number seen; 0 before the first. */
uint64_t tracker_next(const struct sequence_tracker *a);

/* Sequence numbers below tracker_next() that have not come, counted from the bitmap (not from what came). */
uint64_t tracker_gaps(const struct sequence_tracker *a);

#endif
