/* SPDX-License-Identifier: BSD-3-Clause */
/* What a polling loop spends its time on: laps with work, and laps in which it only looked.
 *
 * A lap is busy if frames moved in it (as DPDK's testpmd and Open vSwitch count their cycles); time given
 * away by a yield is never busy. Time that the host takes from the thread cannot be told apart and counts as
 * the lap's, but a lap that takes far longer than it should is counted as a gap, too: of that time somebody
 * else had the CPU, or the machine below was away.
 */
#ifndef ICBENCH_LOOP_METER_H
#define ICBENCH_LOOP_METER_H

#include <stdint.h>

/* A lap without frames takes less than a microsecond; interrupts stay below this. */
#define LOOP_METER_GAP_NS 30e3

/* How many times as long as its frames usually take a lap with frames may last besides. */
#define LOOP_METER_PATIENCE 4

struct loop_meter {
	uint64_t last;       /* cycles: when the present lap began */
	uint64_t given_away; /* cycles of it that were given to others */
	uint64_t excused;    /* cycles of it that the loop itself spent on something else than frames */
	uint64_t limit;      /* cycles: what a lap without frames takes at most; greater ones are gaps */
	uint64_t per_frame;  /* cycles: what a frame took in the window before; 0 while that is not known */
};

struct loop_meter_cycles {
	uint64_t busy, idle;
	uint64_t frames;    /* moved in busy laps */
	uint64_t gap, gaps; /* how much longer than usual laps took, and how many they were */
	uint64_t busy_gap;  /* that part of the gap which is in busy laps */
};

/* limit: cycles. */
static inline void loop_meter_start(struct loop_meter *m, uint64_t now, uint64_t limit)
{
	*m = (struct loop_meter){.last = now, .limit = limit};
}

/* Judges a lap of that length (cycles) that was longer than the limit. A kernel socket's calls can take long
 * by themselves, so what frames usually take is theirs; before that is known nothing is claimed. */
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

/* Ends the lap, in which so many frames moved, at time now (cycles), and begins the next. */
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

/* Takes from a window that has ended what its frames took, without the gaps of laps that had some. */
static inline void loop_meter_learn(struct loop_meter *m, const struct loop_meter_cycles *window)
{
	if (window->frames)
		m->per_frame = (window->busy - window->busy_gap) / window->frames + 1;
}

#endif
