/* SPDX-License-Identifier: BSD-3-Clause */
/* The cycle account of a loop, and gaps in which it was off its CPU. */
#include "base/loop_meter.h"

#include "check.h"
#include "sender_port.h"

static void laps(void)
{
	struct loop_meter m;
	struct loop_meter_cycles c = {0};

	loop_meter_start(&m, 100, 1000);
	loop_meter_lap(&m, 150, 1, &c);
	loop_meter_lap(&m, 250, 0, &c);
	m.given_away = 30;
	loop_meter_lap(&m, 300, 32, &c);
	CHECK_EQUAL(c.busy, 70);
	CHECK_EQUAL(c.idle, 130);
	m.given_away = 5;
	loop_meter_lap(&m, 310, 0, &c);
	loop_meter_lap(&m, 320, 7, &c);
	CHECK_EQUAL(c.busy, 80);
	CHECK_EQUAL(c.idle, 140);
	CHECK_EQUAL(c.frames, 40);
	CHECK_EQUAL(c.gaps, 0);
}

static void laps_that_last_too_long(void)
{
	struct loop_meter m;
	struct loop_meter_cycles c = {0},
	                         window = {.busy = 5000, .gap = 3000, .busy_gap = 1000, .frames = 40};

	loop_meter_start(&m, 0, 1000);
	loop_meter_lap(&m, 1000, 0, &c);
	CHECK_EQUAL(c.gaps, 0);
	loop_meter_lap(&m, 2001, 0, &c);
	CHECK_EQUAL(c.gaps, 1);
	CHECK_EQUAL(c.gap, 1001);
	/* The cycles of a frame are unknown. */
	loop_meter_lap(&m, 12000, 4, &c);
	CHECK_EQUAL(c.gaps, 1);
	loop_meter_learn(&m, &window);
	CHECK_EQUAL(m.per_frame, 101);
	/* Four frames may take four times as long as usual, and the limit. */
	loop_meter_lap(&m, 12000 + 1000 + 4 * 404, 4, &c);
	CHECK_EQUAL(c.gaps, 1);
	loop_meter_lap(&m, 14616 + 2617, 4, &c);
	CHECK_EQUAL(c.gaps, 2);
	CHECK_EQUAL(c.gap, 1001 + 2617 - 404);
	/* Nothing is learned from a window without frames. */
	loop_meter_learn(&m, &(struct loop_meter_cycles){.idle = 1});
	CHECK_EQUAL(m.per_frame, 101);
}

/* A loop that was off its CPU for most of one window counts no gaps in the next, whose laps are as usual. */
static void a_window_of_gaps_is_forgotten(void)
{
	struct loop_meter m;
	struct loop_meter_cycles away = {0}, after = {0};
	uint64_t now = 0;

	loop_meter_start(&m, now, 1000);
	for (unsigned i = 0; i < 10; i++)
		loop_meter_lap(&m, now += 2000, 32, &away);
	loop_meter_lap(&m, now += 50000, 0, &away);
	CHECK_EQUAL(away.gaps, 1);
	loop_meter_learn(&m, &away);
	for (unsigned i = 0; i < 10; i++)
		loop_meter_lap(&m, now += 2000, 32, &after);
	CHECK_EQUAL(after.gaps, 0);
}

/* A lap with frames that was far too long does not make frames look slow, so the next such lap is a gap, too.
 */
static void a_gap_among_frames_teaches_nothing(void)
{
	struct loop_meter m;
	struct loop_meter_cycles first = {0}, away = {0}, after = {0};
	uint64_t now = 0;

	loop_meter_start(&m, now, 1000);
	for (unsigned i = 0; i < 10; i++)
		loop_meter_lap(&m, now += 320, 32, &first);
	loop_meter_learn(&m, &first);
	loop_meter_lap(&m, now += 320, 32, &away);
	loop_meter_lap(&m, now += 1000000, 32, &away);
	CHECK_EQUAL(away.gaps, 1);
	loop_meter_learn(&m, &away);
	loop_meter_lap(&m, now += 1000000, 32, &after);
	CHECK_EQUAL(after.gaps, 1);
	CHECK_EQUAL(after.gap > 990000, 1);
}

static void what_the_loop_gives_away_is_no_gap(void)
{
	struct loop_meter m;
	struct loop_meter_cycles c = {0};

	loop_meter_start(&m, 0, 1000);
	m.given_away = 3000;
	m.excused = 1500;
	loop_meter_lap(&m, 5500, 0, &c);
	CHECK_EQUAL(c.gaps, 0);
	/* The next lap starts with nothing excused. */
	loop_meter_lap(&m, 7000, 0, &c);
	CHECK_EQUAL(c.gaps, 1);
	CHECK_EQUAL(c.gap, 1500);
	m.given_away = 3000;
	loop_meter_lap(&m, 11500, 0, &c);
	CHECK_EQUAL(c.gaps, 2);
	CHECK_EQUAL(c.gap, 3000);
}

static void burn(double ns)
{
	uint64_t until = clock_monotonic_ns() + (uint64_t)ns;

	while (clock_monotonic_ns() < until)
		;
}

/* A port that is off its CPU for three milliseconds in each burst. */
static int slow_commit(struct io *io, unsigned n)
{
	burn(3e6);
	return port_commit(io, n);
}

static void slow_output(void *context, uint16_t number, const struct window_tx *w)
{
	keep(context, number, w);
	burn(3e6);
}

/* Output and yields are the loop's own time. Bursts that are always slow are no gap; an unusually slow one
 * is. */
static void a_loop_that_is_kept_away(void)
{
	static const struct io_ops SLOW = {
	        .name = "slow", .tx_acquire = port_acquire, .tx_commit = slow_commit};
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.05,
	        .duration_s = 0.2,
	        .rate_pps = 800,
	        .io.stream_id = 1,
	        .yield_every = 1};
	struct run r = {.o = &o, .ops = &PORT};
	struct sender s;
	uint64_t gaps = UINT64_MAX, gap_ns, usual_ns;

	port.takes = PORT_BURST;
	/* Each preemption may be a gap, and a hypervisor's is invisible, so the quietest of several attempts
	 * counts. */
	for (unsigned attempt = 0; attempt < 20 && gaps > 1; attempt++) {
		uint64_t now = 0, away = run_involuntary_switches();

		port_start(&s, &r, 1, slow_output);
		while (sender_step(&s) != SENDER_ENDED)
			;
		away = run_involuntary_switches() - away;
		for (unsigned number = 1; number <= 4; number++)
			now += windows[number].cycles.gaps;
		now -= now < away ? now : away;
		gaps = now < gaps ? now : gaps;
		sender_free(&s);
	}
	CHECK(gaps <= 1);

	r.ops = &SLOW;
	port_start(&s, &r, 1, keep);
	while (windows[1].start_ns == 0 || s.cursor.number < 3)
		sender_step(&s);
	CHECK(s.meter.per_frame > 0);
	gaps = s.total.cycles.gaps + s.now.cycles.gaps;
	gap_ns = clock_cycles_to_ns(&r.clock, s.total.cycles.gap + s.now.cycles.gap);
	usual_ns = clock_cycles_to_ns(&r.clock, PORT_BURST * s.meter.per_frame);
	burn(50e6 + LOOP_METER_PATIENCE * (double)usual_ns);
	sender_step(&s);
	CHECK(s.total.cycles.gaps + s.now.cycles.gaps == gaps + 1);
	gap_ns = clock_cycles_to_ns(&r.clock, s.total.cycles.gap + s.now.cycles.gap) - gap_ns;
	CHECK(gap_ns >= 49000000 + (LOOP_METER_PATIENCE - 1) * usual_ns);
	sender_free(&s);
}

int main(void)
{
	laps();
	laps_that_last_too_long();
	a_window_of_gaps_is_forgotten();
	a_gap_among_frames_teaches_nothing();
	what_the_loop_gives_away_is_no_gap();
	a_loop_that_is_kept_away();
	return 0;
}
