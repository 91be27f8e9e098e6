/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender over a port of the test's own: trains, which frame was the first of its burst, and where its
 * cycles go.
 */
#include "traffic/sender.h"

#include "check.h"
#include "traffic/client.h"

#define PORT_BURST 8u

/* A port that takes what it is told to. */
static struct {
	unsigned takes; /* frames of each hand-over */
	uint8_t buffers[PORT_BURST][FRAME_PACKET_MIN];
	uint64_t taken;
} port;

static unsigned port_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	(void)io;
	for (unsigned i = 0; i < n; i++)
		payload[i] = port.buffers[i];
	return n;
}

static int port_commit(struct io *io, unsigned n)
{
	unsigned taken = n < port.takes ? n : port.takes;

	(void)io;
	port.taken += taken;
	return (int)taken;
}

static const struct io_ops PORT = {.name = "test", .tx_acquire = port_acquire, .tx_commit = port_commit};

static struct window_tx windows[8];

static void keep(void *context, uint16_t number, const struct window_tx *w)
{
	(void)context;
	CHECK(number < 8);
	windows[number] = *w;
}

static void until_the_end(struct sender *s, struct run *r, const struct options *o)
{
	*r = (struct run){.o = o, .ops = &PORT};
	clock_calibrate(&r->clock);
	r->start = clock_cycles();
	memset(windows, 0, sizeof(windows));
	CHECK(sender_init(s, r, 1, keep, NULL));
	s->sent_at = calloc(ACCOUNT_HORIZON, sizeof(*s->sent_at));
	CHECK(s->sent_at);
	sender_start(s);
	while (sender_step(s) != SENDER_ENDED)
		;
}

static void lengths_of_trains(void)
{
	struct options o = {.train_from = 32, .train_to = 1024, .train_steps = 6};

	for (uint16_t window = 1; window <= 12; window++)
		CHECK_EQUAL(sender_train(&o, window), 32u << (window - 1) % 6);
	CHECK_EQUAL(sender_train(&o, 0), 32);
	o = (struct options){.train_from = 100, .train_to = 200, .train_steps = 1};
	CHECK_EQUAL(sender_train(&o, 7), 100);
	o.train_from = 0;
	CHECK_EQUAL(sender_train(&o, 7), 0);
}

static void one_train_a_window(void)
{
	struct options o = {.packet_size = 64,
	        .burst = PORT_BURST,
	        .window_s = 0.01,
	        .duration_s = 0.06,
	        .stream_id = 1,
	        .train_from = 10,
	        .train_to = 40,
	        .train_steps = 3};
	static const unsigned LENGTHS[] = {10, 20, 40};
	unsigned whole = 0;

	port.takes = 3;
	/* A host that takes the CPU away for a whole window takes its train along: then once more. */
	for (unsigned attempt = 0; attempt < 50 && whole < 6; attempt++) {
		struct sender s;
		struct run r;

		until_the_end(&s, &r, &o);
		whole = 0;
		for (unsigned number = 1; number <= 6; number++) {
			const struct window_tx *w = &windows[number];

			CHECK(w->scheduled <= LENGTHS[(number - 1) % 3]);
			CHECK_EQUAL(w->sent, w->scheduled);
			CHECK((w->tx_full > 0) == (w->scheduled > 0));
			CHECK((w->cycles.busy > 0) == (w->scheduled > 0));
			whole += w->scheduled == LENGTHS[(number - 1) % 3];
		}
		CHECK(whole < 6 || s.next_sequence == 140);
		sender_free(&s);
	}
	CHECK_EQUAL(whole, 6);
}

static void the_first_of_a_burst(void)
{
	struct options o = {.packet_size = 64,
	        .burst = PORT_BURST,
	        .window_s = 1,
	        .rate_pps = 1e9,
	        .count = 40,
	        .stream_id = 1};
	struct sender s;
	struct run r;
	uint64_t before;

	port.takes = PORT_BURST;
	before = clock_cycles();
	until_the_end(&s, &r, &o);
	CHECK_EQUAL(s.next_sequence, 40);
	CHECK_EQUAL(s.total.bursts + s.now.bursts, 5);
	for (unsigned i = 0; i < 40; i++) {
		CHECK_EQUAL(s.sent_at[i] & 1, i % PORT_BURST == 0);
		CHECK(s.sent_at[i] >> 1 >= before && s.sent_at[i] >> 1 <= clock_cycles());
	}
	sender_free(&s);
}

/* What a port refuses is waiting, not work. */
static void refusals_are_idle(void)
{
	struct options o = {.packet_size = 64,
	        .burst = PORT_BURST,
	        .window_s = 0.01,
	        .duration_s = 0.01,
	        .yield_every = 1,
	        .stream_id = 1};
	struct sender s;
	struct run r;

	port.takes = 0;
	until_the_end(&s, &r, &o);
	CHECK_EQUAL(windows[1].sent, 0);
	CHECK_EQUAL(windows[1].cycles.busy, 0);
	CHECK(windows[1].cycles.idle > 0 && windows[1].yields > 0);
	sender_free(&s);
}

static void laps(void)
{
	struct meter m;
	struct meter_cycles c = {0};

	meter_start(&m, 100, 1000);
	meter_lap(&m, 150, 1, &c);
	meter_lap(&m, 250, 0, &c);
	m.given_away = 30;
	meter_lap(&m, 300, 32, &c);
	CHECK_EQUAL(c.busy, 70);
	CHECK_EQUAL(c.idle, 130);
	m.given_away = 5;
	meter_lap(&m, 310, 0, &c);
	meter_lap(&m, 320, 7, &c);
	CHECK_EQUAL(c.busy, 80);
	CHECK_EQUAL(c.idle, 140);
	CHECK_EQUAL(c.frames, 40);
	CHECK_EQUAL(c.gaps, 0);
}

static void laps_that_last_too_long(void)
{
	struct meter m;
	struct meter_cycles c = {0}, window = {.busy = 5000, .gap = 1000, .frames = 40};

	meter_start(&m, 0, 1000);
	meter_lap(&m, 1000, 0, &c);
	CHECK_EQUAL(c.gaps, 0);
	meter_lap(&m, 2001, 0, &c);
	CHECK_EQUAL(c.gaps, 1);
	CHECK_EQUAL(c.gap, 1001);
	/* What frames take is not known yet. */
	meter_lap(&m, 12000, 4, &c);
	CHECK_EQUAL(c.gaps, 1);
	meter_learn(&m, &window);
	CHECK_EQUAL(m.per_frame, 101);
	/* Four frames may take four times as long as usual, and the limit. */
	meter_lap(&m, 12000 + 1000 + 4 * 404, 4, &c);
	CHECK_EQUAL(c.gaps, 1);
	meter_lap(&m, 14616 + 2617, 4, &c);
	CHECK_EQUAL(c.gaps, 2);
	CHECK_EQUAL(c.gap, 1001 + 2617 - 404);
	/* A window without frames teaches nothing. */
	meter_learn(&m, &(struct meter_cycles){.idle = 1});
	CHECK_EQUAL(m.per_frame, 101);
}

static void what_the_loop_gives_away_is_no_gap(void)
{
	struct meter m;
	struct meter_cycles c = {0};

	meter_start(&m, 0, 1000);
	m.given_away = 3000;
	m.excused = 1500;
	meter_lap(&m, 5500, 0, &c);
	CHECK_EQUAL(c.gaps, 0);
	/* The next lap starts with nothing excused. */
	meter_lap(&m, 7000, 0, &c);
	CHECK_EQUAL(c.gaps, 1);
	CHECK_EQUAL(c.gap, 1500);
	m.given_away = 3000;
	meter_lap(&m, 11500, 0, &c);
	CHECK_EQUAL(c.gaps, 2);
	CHECK_EQUAL(c.gap, 3000);
}

static void burn(double ns)
{
	uint64_t until = clock_monotonic_ns() + (uint64_t)ns;

	while (clock_monotonic_ns() < until)
		;
}

/* A port that is away for three milliseconds in each of its hand-overs. */
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

/* Lines of output and yields are the loop's own time; hand-overs that are as slow as they always were are no
 * gap either, one that is not, is. */
static void a_loop_that_is_kept_away(void)
{
	static const struct io_ops SLOW = {
	        .name = "slow", .tx_acquire = port_acquire, .tx_commit = slow_commit};
	struct options o = {.packet_size = 64,
	        .burst = PORT_BURST,
	        .window_s = 0.05,
	        .duration_s = 0.2,
	        .rate_pps = 800,
	        .stream_id = 1,
	        .yield_every = 1};
	struct run r = {.o = &o, .ops = &PORT};
	struct sender s;
	uint64_t gaps = UINT64_MAX, gap_ns;

	port.takes = PORT_BURST;
	clock_calibrate(&r.clock);
	/* A busy host makes gaps of its own: the quietest of some attempts is asked. */
	for (unsigned attempt = 0; attempt < 20 && gaps > 1; attempt++) {
		uint64_t now = 0;

		memset(windows, 0, sizeof(windows));
		r.start = clock_cycles();
		CHECK(sender_init(&s, &r, 1, slow_output, NULL));
		sender_start(&s);
		while (sender_step(&s) != SENDER_ENDED)
			;
		for (unsigned number = 1; number <= 4; number++)
			now += windows[number].cycles.gaps;
		gaps = now < gaps ? now : gaps;
		sender_free(&s);
	}
	CHECK(gaps <= 1);

	r.ops = &SLOW;
	memset(windows, 0, sizeof(windows));
	r.start = clock_cycles();
	CHECK(sender_init(&s, &r, 1, keep, NULL));
	sender_start(&s);
	while (windows[1].start_ns == 0 || s.cursor.number < 3)
		sender_step(&s);
	CHECK(s.meter.per_frame > 0);
	gaps = s.total.cycles.gaps + s.now.cycles.gaps;
	gap_ns = clock_cycles_to_ns(&r.clock, s.total.cycles.gap + s.now.cycles.gap);
	burn(50e6);
	sender_step(&s);
	CHECK(s.total.cycles.gaps + s.now.cycles.gaps > gaps);
	CHECK(clock_cycles_to_ns(&r.clock, s.total.cycles.gap + s.now.cycles.gap) - gap_ns >= 49000000);
	sender_free(&s);
}

static void a_fixed_piece_of_work(void)
{
	struct canary c;
	uint64_t before, took;

	canary_init(&c);
	before = clock_monotonic_ns();
	took = canary_ns(&c);
	CHECK(took > 100000);
	CHECK(took <= clock_monotonic_ns() - before);
	canary_free(&c);
	CHECK_EQUAL(canary_ns(&c), 0);
}

/* Three answers: the first of a burst, another one of it, and one of the warm-up. */
static void first_frames_have_a_histogram(void)
{
	enum { FRAMES = 3 };
	struct clock clock = {.hz = 1000000000, .ns_per_cycle = 1};
	uint64_t *sent_at = calloc(ACCOUNT_HORIZON, sizeof(*sent_at));
	uint8_t payloads[FRAMES][64], verdicts[FRAMES] = {RECEIVER_FIRST, RECEIVER_FIRST, RECEIVER_FIRST};
	struct io_frame frames[FRAMES];
	struct client_times t;

	CHECK(sent_at && client_times_init(&t, &clock, 3, sent_at));
	for (unsigned i = 0; i < FRAMES; i++) {
		struct frame_label label = {1, i < 2 ? 1 : FRAME_WINDOW_WARMUP, i};

		frame_stamp(payloads[i], label, 1000);
		frames[i] = (struct io_frame){.payload = payloads[i], .payload_len = 64};
		sent_at[i] = sender_sent_at(1100 + i * 100, i != 1);
	}
	client_times_take(&t, frames, verdicts, FRAMES, 2000);
	CHECK_EQUAL(t.intended.count, 2);
	CHECK_EQUAL(t.actual.count, 2);
	CHECK_EQUAL(t.actual.min, 800);
	CHECK_EQUAL(t.actual.max, 900);
	CHECK_EQUAL(t.first.count, 1);
	CHECK_EQUAL(t.first.min, 1000);
	client_times_free(&t);
	free(sent_at);
}

int main(void)
{
	lengths_of_trains();
	one_train_a_window();
	the_first_of_a_burst();
	refusals_are_idle();
	laps();
	laps_that_last_too_long();
	what_the_loop_gives_away_is_no_gap();
	a_loop_that_is_kept_away();
	a_fixed_piece_of_work();
	first_frames_have_a_histogram();
	return 0;
}
