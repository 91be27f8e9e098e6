/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycle account of a polling loop: busy laps, in which frames moved, and idle laps (as DPDK's testpmd and
 * Open vSwitch count cycles). Time given away by a yield is never busy.
 *
 * Time that the host takes from the thread counts as the lap's, because it cannot be distinguished. But the
 * excess of a lap that takes far longer than usual is also counted as a gap: in that time another process had
 * the CPU, or the hypervisor had taken it.
 */
#ifndef ICBENCH_LOOP_METER_H
#define ICBENCH_LOOP_METER_H

#include <stdint.h>

/* In ns. A lap without frames takes less than a microsecond, and interrupts stay below this limit. */
#define LOOP_METER_GAP_NS 30e3

/* A lap with frames is a gap only if it exceeds the limit by this multiple of what its frames usually
 * take. */
#define LOOP_METER_PATIENCE 4

struct loop_meter {
	uint64_t last;       /* cycles: start of the current lap */
	uint64_t given_away; /* cycles of the lap that were given to other processes */
	uint64_t excused;    /* cycles of the lap that the loop spent on something other than frames */
	uint64_t limit;      /* cycles: longest lap without frames that is no gap */
	uint64_t per_frame;  /* cycles of a frame in the previous window; 0: unknown */
};

struct loop_meter_cycles {
	uint64_t busy, idle;
	uint64_t frames;    /* moved in busy laps */
	uint64_t gap, gaps; /* total excess of the gaps, and their number */
	uint64_t busy_gap;  /* the part of `gap` in busy laps */
};

/* Starts a meter at time now; `limit` is in cycles. */
static inline void loop_meter_start(struct loop_meter *m, uint64_t now, uint64_t limit)
{
	*m = (struct loop_meter){.last = now, .limit = limit};
}

/* Counts the gap of a lap (in cycles) above the limit. Calls of a kernel socket can take long, so what frames
 * usually take is not a gap; as long as that is unknown, nothing is counted. */
static inline void loop_meter_judge(
        const struct loop_meter *m, uint64_t lap, unsigned frames, struct loop_meter_cycles *into)
{
	uint64_t usual = frames * m->per_frame;

	if ((frames && !m->per_frame) || lap <= m->limit + LOOP_METER_PATIENCE * usual)
		return;
	into->gap += lap - usual;
	into->gaps++;
	if (frames)
		into->busy_gap += lap - usual;
}

/* Ends the lap, in which `frames` frames moved, at time now (cycles), and begins the next one. */
static inline void loop_meter_lap(
        struct loop_meter *m, uint64_t now, unsigned frames, struct loop_meter_cycles *into)
{
	uint64_t lap = now - m->last, away = m->given_away + m->excused;

	m->last = now;
	if (!frames) {
		into->idle += lap;
	} else {
		into->busy += lap - m->given_away;
		into->idle += m->given_away;
		into->frames += frames;
	}
	if (__builtin_expect(lap > m->limit + away, 0))
		loop_meter_judge(m, lap - away, frames, into);
	m->given_away = m->excused = 0;
}

/* Learns the cycles of a frame from a window that has ended, without the gaps in its busy laps. */
static inline void loop_meter_learn(struct loop_meter *m, const struct loop_meter_cycles *window)
{
	if (window->frames)
		m->per_frame = (window->busy - window->busy_gap) / window->frames + 1;
}

#endif
