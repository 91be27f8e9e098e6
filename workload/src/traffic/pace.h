/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule of bursts: absolute times on the TSC, without drift. Independent of I/O and real clocks, so
 * that a test can supply its own clock.
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
	uint32_t catch_up; /* frames that a late sender may send at once; 0: no limit */
	/* A trace of rates, one for each second. */
	uint64_t hz, ahead;  /* cycles of a second; cycles from the start to the first rate */
	uint64_t change;     /* cycles: start of the next rate; UINT64_MAX if there is none */
	const double *rates; /* that rate and the following ones */
	unsigned rates_left;
};

struct pace_due {
	uint64_t intended;   /* cycles: intended send time of the burst */
	uint64_t lateness;   /* cycles since the intended time */
	uint64_t due_frames; /* frames that should have been sent by now; more than a burst means catching up
	                      */
};

/* hz is in cycles per second, rate in frames per second (0: maximum), backlog in cycles. */
void pace_init(struct pace *p, uint64_t hz, double rate, unsigned burst, uint32_t catch_up, uint64_t backlog);
void pace_start(struct pace *p, uint64_t start);

/* Makes the rate change every second, starting `ahead` cycles after the start. The last rate stays; 0 sends
 * nothing. Must precede pace_start(). Keeps the pointer to rates. */
void pace_follow(struct pace *p, const double *rates, unsigned count, uint64_t ahead);

/* Begins the next second of a trace, with a burst at its beginning. */
void pace_change(struct pace *p);

/* Returns how many frames should have been sent by time now (now >= p->next). More than a burst means
 * catching up. */
static inline uint64_t pace_due_frames(const struct pace *p, uint64_t now)
{
	uint64_t late = now - p->next;

	return late < p->step ? p->burst : (late / p->step + 1) * p->burst;
}

/* Whether the next burst has to be given up at time now, because it is older than the backlog or exceeds the
 * limit for catching up. The caller counts it as not offered in its window and calls pace_next(). */
static inline bool pace_overdue(const struct pace *p, uint64_t now)
{
	uint64_t late = now - p->next;

	if (p->unlimited || (int64_t)late < (int64_t)p->step)
		return false;
	return late > p->backlog || (p->catch_up && pace_due_frames(p, now) > p->catch_up);
}

/* Advances to the next burst. */
static inline void pace_next(struct pace *p)
{
	uint64_t frac = p->next_frac + p->step_frac;

	p->next += p->step + (frac < p->next_frac);
	p->next_frac = frac;
	if (p->next >= p->change - 1) /* a cycle for rounding: no burst just before the change */
		pace_change(p);
}

/* Whether a burst is due at time now; if so, fills `due`. Does not advance. */
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
