/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrived, by sequence number: distinct, duplicated (RFC 5560), reordered (RFC 4737), late, missing.
 *
 * A bitmap remembers the last 2^20 sequence numbers below the next expected one (the horizon). It has twice
 * as many bits, so that words can be recycled whole while the horizon stays exact.
 */
#ifndef ICBENCH_ACCOUNT_H
#define ICBENCH_ACCOUNT_H

#include <stdint.h>

#define ACCOUNT_HORIZON (UINT64_C(1) << 20)

struct account;

enum account_verdict {
	ACCOUNT_NEW,       /* first copy, in order */
	ACCOUNT_REORDERED, /* first copy, behind a higher sequence number */
	ACCOUNT_DUPLICATE, /* a further copy */
	ACCOUNT_LATE,      /* older than the horizon: new or a copy, nobody can tell */
};

/* NULL if memory is short. */
struct account *account_new(void);
void account_free(struct account *a);

/* Has `gone` called for n sequence numbers in a row that never came, once that is sure. A single frame can
 * make n as large as the largest sequence number. */
typedef void (*account_gone)(void *context, uint64_t first, uint64_t n);
void account_watch(struct account *a, account_gone gone, void *context);

/* At the end: those below `end` (one more than the last sent) that have not come are gone, too. */
void account_finish(struct account *a, uint64_t end);

/* One frame with that sequence number has arrived. */
enum account_verdict account_one(struct account *a, uint64_t sequence);

/* n frames first, first+1, ... have arrived, all in order: true if first is the next expected number or
 * beyond it, and everything is done; else nothing is done and each must go through account_one(). */
int account_run(struct account *a, uint64_t first, unsigned n);

/* One more than the highest sequence number seen; 0 before the first. */
uint64_t account_next(const struct account *a);

/* Sequence numbers below account_next() that have not come, counted from the bitmap (not from what came). */
uint64_t account_gaps(const struct account *a);

#endif
