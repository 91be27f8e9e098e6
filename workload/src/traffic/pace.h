/* SPDX-License-Identifier: BSD-3-Clause */
/* When to send the next burst: absolute times on the TSC, without drift. Knows nothing of I/O or of real
 * clocks, so that a test can drive it with a clock of its own.
 */
#ifndef ICBENCH_PACE_H
#define ICBENCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
	bool unlimited;     /* rate 0: every burst is due at once */
	uint64_t start;     /* cycles: when the first burst is due */
	uint64_t next;      /* cycles: when the next burst is due */
	uint64_t next_frac; /* its 2^-64 fractions */
	uint64_t step;      /* cycles between bursts */
	uint64_t step_frac;
	uint64_t backlog;  /* cycles: a burst later than this is given up */
	unsigned burst;    /* frames */
	uint32_t catch_up; /* frames a late sender may hand over at once; 0 is no cap */
	/* A trace of rates, each for a second. */
	uint64_t hz, ahead;  /* cycles of a second, and from the start to the first rate */
	uint64_t change;     /* cycles: when the next rate begins; UINT64_MAX when there is none */
	const double *rates; /* that rate, then those behind it */
	unsigned rates_left;
};

struct pace_due {
	uint64_t intended; /* cycles: intended send time of the burst */
	uint64_t lateness; /* cycles since then */
	uint64_t
	        due_frames; /* how many frames should have left by now: more than a burst means catching up */
};

/* hz: cycles per second; rate in frames per second, 0 for the maximum. */
void pace_init(struct pace *p, uint64_t hz, double rate, unsigned burst, uint32_t catch_up, uint64_t backlog);
void pace_start(struct pace *p, uint64_t start);

/* Makes the rate change every second, from `ahead` cycles behind the start on; the last rate stays, 0 sends
 * nothing. Call it before pace_start(). rates are kept. */
void pace_follow(struct pace *p, const double *rates, unsigned count, uint64_t ahead);

/* Begins the next second of a trace, with a burst at its very begin. */
void pace_change(struct pace *p);

/* How many frames should have left by time now (now >= p->next): more than a burst means catching up. */
static inline uint64_t pace_due_frames(const struct pace *p, uint64_t now)
{
	uint64_t late = now - p->next;

	return late < p->step ? p->burst : (late / p->step + 1) * p->burst;
}

/* Whether the next burst must be given up at time now, since it is older than the backlog or beyond the
 * catch-up cap. The caller counts it as not offered, in the window it was scheduled in, and goes on with
 * pace_next(). */
static inline bool pace_overdue(const struct pace *p, uint64_t now)
{
	uint64_t late = now - p->next;

	if (p->unlimited || (int64_t)late < (int64_t)p->step)
		return false;
	return late > p->backlog || (p->catch_up && pace_due_frames(p, now) > p->catch_up);
}

/* Moves on to the next burst. */
static inline void pace_next(struct pace *p)
{
	uint64_t frac = p->next_frac + p->step_frac;

	p->next += p->step + (frac < p->next_frac);
	p->next_frac = frac;
	if (p->next >= p->change - 1) /* a cycle for rounding: no burst just before the change */
		pace_change(p);
}

/* Whether a burst is due at time now; if so fills due. Does not move on. */
static inline bool pace_due(const struct pace *p, uint64_t now, struct pace_due *due)
{
	if (p->unlimited) {
		*due = (struct pace_due){.intended = now, .lateness = 0, .due_frames = p->burst};
		return true;
	}
	if ((int64_t)(now - p->next) < 0)
		return false;
	due->intended = p->next;
	due->lateness = now - p->next;
	due->due_frames = pace_due_frames(p, now);
	return true;
}

#endif
