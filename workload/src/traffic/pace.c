/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/pace.h"

#include <math.h>

void pace_init(struct pace *p, uint64_t hz, double rate, unsigned burst, uint32_t catch_up, uint64_t backlog)
{
	*p = (struct pace){.unlimited = rate <= 0, .burst = burst, .catch_up = catch_up, .backlog = backlog};
	if (!p->unlimited) {
		/* Rounded up: a burst due at the very end of a window must not come out a cycle before it. */
		long double step = nextafterl((long double)hz * burst / (long double)rate, INFINITY);

		p->step = (uint64_t)step;
		p->step_frac = (uint64_t)ldexpl(step - (long double)p->step, 64);
		if (p->step == 0) /* faster than the clock ticks: as good as the maximum, but counted */
			p->step = 1;
	}
}

void pace_start(struct pace *p, uint64_t start)
{
	p->start = p->next = start;
	p->next_frac = 0;
}
