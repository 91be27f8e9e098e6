/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/pace.h"

#include <math.h>

/* Far in the future, but still a positive signed distance in cycles. */
#define NEVER (UINT64_C(1) << 62)

static void set_rate(struct pace *p, double rate)
{
	/* Rounded up, so that a burst due at the end of a window is not scheduled one cycle before it. */
	long double step = nextafterl((long double)p->hz * p->burst / (long double)rate, INFINITY);

	p->step = (uint64_t)step;
	p->step_frac = (uint64_t)ldexpl(step - (long double)p->step, 64);
	if (p->step == 0) /* faster than the clock: like the maximum, but counted */
		p->step = 1;
}

void pace_init(struct pace *p, uint64_t hz, double rate, unsigned burst, uint32_t catch_up, uint64_t backlog)
{
	*p = (struct pace){.unlimited = rate <= 0,
	        .burst = burst,
	        .catch_up = catch_up,
	        .backlog = backlog,
	        .hz = hz,
	        .change = UINT64_MAX};
	if (!p->unlimited)
		set_rate(p, rate);
}

void pace_start(struct pace *p, uint64_t start)
{
	p->start = p->next = start;
	p->next_frac = 0;
	if (p->rates_left)
		p->change = start + p->ahead;
}

void pace_follow(struct pace *p, const double *rates, unsigned count, uint64_t ahead)
{
	p->rates = rates;
	p->rates_left = count;
	p->ahead = ahead;
}

void pace_change(struct pace *p)
{
	double rate = 0;

	while (rate <= 0 && p->rates_left) {
		p->next = p->change;
		p->next_frac = 0;
		rate = *p->rates++;
		p->change = --p->rates_left ? p->change + p->hz : UINT64_MAX;
	}
	if (rate > 0)
		set_rate(p, rate);
	else
		p->next += NEVER;
}
