/* SPDX-License-Identifier: BSD-3-Clause */
/* What a polling loop spends its time on: laps with work, and laps in which it only looked.
 *
 * A lap is busy if frames moved in it (as DPDK's testpmd and Open vSwitch count their cycles); time given
 * away by a yield is never busy. Time that the host takes from the thread cannot be told apart and counts as
 * the lap's.
 */
#ifndef ICBENCH_METER_H
#define ICBENCH_METER_H

#include <stdbool.h>
#include <stdint.h>

struct meter {
	uint64_t last;       /* cycles: when the present lap began */
	uint64_t given_away; /* cycles of it that were given to others */
};

struct meter_cycles {
	uint64_t busy, idle;
};

static inline void meter_start(struct meter *m, uint64_t now)
{
	*m = (struct meter){.last = now};
}

/* Ends the lap at time now (cycles) and begins the next. */
static inline void meter_lap(struct meter *m, uint64_t now, bool worked, struct meter_cycles *into)
{
	uint64_t lap = now - m->last;

	m->last = now;
	if (!worked) {
		into->idle += lap;
	} else {
		into->busy += lap - m->given_away;
		into->idle += m->given_away;
	}
	m->given_away = 0;
}

#endif
