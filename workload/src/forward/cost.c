/* SPDX-License-Identifier: BSD-3-Clause */
#include "forward/cost.h"

#include "base/clock.h"

/* Cycles: more than one step of the loop, less than an interrupt. */
#define SETTLED_MAX 400
/* Cycles: a longer step of the loop was another task's time; an interrupt is shorter. */
#define AWAY_MIN 20000u
#define PROBES 256
#define PROBE_SPELLS 16
#define PROBE_CYCLES 300u

void cost_spend(struct cost *c, unsigned packets)
{
	int64_t elapsed = 0, due;
	uint64_t start, last;

	c->owed += (int64_t)packets * c->cycles;
	due = c->owed - c->outside;
	if (due <= 0)
		return;
	start = last = clock_cycles();
	while (elapsed < due) {
		uint64_t now = clock_cycles();

		if (now - last > AWAY_MIN)
			start += now - last;
		last = now;
		elapsed = (int64_t)(now - start);
	}
	c->owed = due - elapsed;
	if (c->owed < -SETTLED_MAX)
		c->owed = 0;
}

/* Takes the minimum of many probes, because interrupts lengthen the others. */
void cost_init(struct cost *c, uint32_t cycles)
{
	int64_t least = INT64_MAX;

	*c = (struct cost){.cycles = PROBE_CYCLES};
	for (int i = 0; i < PROBES; i++) {
		uint64_t start = clock_cycles();
		int64_t excess;

		c->owed = 0;
		for (int k = 0; k < PROBE_SPELLS; k++)
			cost_spend(c, 1);
		excess = (int64_t)(clock_cycles() - start) + c->owed - (int64_t)PROBE_SPELLS * PROBE_CYCLES;
		if (excess < least)
			least = excess;
	}
	*c = (struct cost){.cycles = cycles, .outside = least > 0 ? least / PROBE_SPELLS : 0};
}
