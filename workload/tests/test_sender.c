/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender over a simulated port: trains, first frames of bursts, and cycles. */
#include "traffic/sender.h"

#include "check.h"
#include "sender_port.h"
#include "traffic/client_times.h"

static void until_the_end(struct sender *s, struct run *r, const struct options *o)
{
	*r = (struct run){.o = o, .ops = &PORT};
	port_start(s, r, 1, keep);
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
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.01,
	        .duration_s = 0.06,
	        .io.stream_id = 1,
	        .train_from = 10,
	        .train_to = 40,
	        .train_steps = 3};
	static const unsigned LENGTHS[] = {10, 20, 40};
	unsigned whole = 0;

	port.takes = 3;
	/* If the host preempts it for a whole window, the train is lost as well: retry. */
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

/* Steps of a sender that sleeps whenever it can, until the end. */
static unsigned steps_with_rests(struct sender *s, struct run *r, const struct options *o)
{
	enum sender_step step;
	unsigned steps = 0;

	*r = (struct run){.o = o, .ops = &PORT};
	port_start(s, r, 1, keep);
	for (; (step = sender_step(s)) != SENDER_ENDED; steps++)
		if (step == SENDER_IDLE || s->full)
			sender_rest(s, 0);
	return steps;
}

static void a_sender_that_waits_sleeps(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .io.wait = IO_WAIT_INTERRUPT,
	        .window_s = 0.01,
	        .duration_s = 0.02,
	        .rate_pps = 4000,
	        .io.stream_id = 1};
	struct sender s;
	struct run r;

	/* Ten bursts, and a step or two before each: one that polls has many thousands. */
	port.takes = PORT_BURST;
	CHECK(steps_with_rests(&s, &r, &o) < 60);
	CHECK_EQUAL(s.total.sent, 80);
	CHECK_EQUAL(port.waits, 0);
	CHECK(s.total.cycles.idle > s.total.cycles.busy);
	sender_free(&s);

	/* A port that is full is waited for. */
	o.rate_pps = 0;
	o.count = 3 * PORT_BURST;
	o.duration_s = 0;
	port.takes = 0;
	CHECK(steps_with_rests(&s, &r, &o) < 60);
	CHECK_EQUAL(s.total.sent + s.now.sent, 3 * PORT_BURST);
	CHECK_EQUAL(port.waits, 1);
	CHECK_EQUAL(port.events, IO_TX);
	sender_free(&s);

	/* What polls does neither. */
	o.io.wait = IO_WAIT_POLL;
	port.waits = 0;
	r = (struct run){.o = &o, .ops = &PORT};
	CHECK_EQUAL(run_rest(&r, IO_RX, clock_cycles() + 1000000), 0);
	CHECK_EQUAL(port.waits, 0);
}

static void the_first_of_a_burst(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 1,
	        .rate_pps = 1e9,
	        .count = 40,
	        .io.stream_id = 1};
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

/* Refused frames are waiting, not work. */
static void refusals_are_idle(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.01,
	        .duration_s = 0.01,
	        .yield_every = 1,
	        .io.stream_id = 1};
	struct sender s;
	struct run r;

	port.takes = 0;
	until_the_end(&s, &r, &o);
	CHECK_EQUAL(windows[1].sent, 0);
	CHECK_EQUAL(windows[1].cycles.busy, 0);
	CHECK(windows[1].cycles.idle > 0 && windows[1].yields > 0);
	sender_free(&s);
}

/* A sender that insists offers refused frames again, due at their time; none counts as refused. */
static void what_was_refused_is_late(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.02,
	        .duration_s = 0.06,
	        .rate_pps = 8000,
	        .io.stream_id = 1};
	struct run r = {.o = &o, .ops = &PORT};
	struct sender s;
	uint64_t closed_until;

	port_start(&s, &r, 2, keep);
	s.insists = true;
	closed_until = r.start + clock_ns_to_cycles(&r.clock, 30e6);
	port.takes = 0;
	while (clock_cycles() < closed_until)
		CHECK(sender_step(&s) == SENDER_SENT || s.next_sequence == 0);
	CHECK_EQUAL(s.now.scheduled, 0);
	CHECK(s.now.tx_full > 1);
	CHECK(sender_behind(&s, clock_cycles()));
	port.takes = 3;
	while (sender_step(&s) != SENDER_ENDED)
		;
	for (unsigned number = 1; number <= 3; number++) {
		CHECK_EQUAL(windows[number].scheduled, 160);
		CHECK_EQUAL(windows[number].sent, 160);
		CHECK_EQUAL(windows[number].refused + windows[number].not_offered, 0);
		CHECK_EQUAL(windows[number].bursts, 20);
	}
	CHECK(windows[1].lateness_max_ns + windows[2].lateness_max_ns >= 10000000);
	/* Every eighth frame is the first of its burst, however many parts the burst had. */
	for (unsigned sequence = 0; sequence < 480; sequence++)
		CHECK_EQUAL(s.sent_at[sequence] & 1, sequence % PORT_BURST == 0);
	/* A burst has one lateness, however often it was offered. */
	CHECK_EQUAL(s.lateness_total.count, 60);
	sender_free(&s);
}

/* A burst older than the backlog is given up in the window in which it was due, including the rest of a
 * partly sent one. */
static void what_is_too_late_is_not_offered(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.02,
	        .duration_s = 0.06,
	        .rate_pps = 8000,
	        .io.stream_id = 1};
	struct run r = {.o = &o, .ops = &PORT};
	struct sender s;
	uint64_t sent = 0, missing = 0, calls = 0;

	port_start(&s, &r, 0.01, keep);
	s.insists = true;
	port.takes = 3;
	while (sender_step(&s) == SENDER_IDLE)
		;
	port.takes = 0;
	while (sender_step(&s) != SENDER_ENDED)
		;
	for (unsigned number = 1; number <= 3; number++) {
		CHECK_EQUAL(windows[number].scheduled, windows[number].sent);
		CHECK_EQUAL(windows[number].sent + windows[number].not_offered, 160);
		calls += windows[number].tx_full;
		sent += windows[number].sent;
		missing += windows[number].not_offered;
	}
	CHECK_EQUAL(sent, 3);
	CHECK_EQUAL(missing, 477);
	CHECK(calls > 0);
	sender_free(&s);
}

/* A turn counts once, however many refusals it had. */
static void turns_of_a_full_port(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.01,
	        .duration_s = 0.03,
	        .io.stream_id = 1};

	for (port.takes = 1; port.takes <= PORT_BURST; port.takes++) {
		uint64_t turns = 0, calls = 0;
		struct sender s;
		struct run r;

		until_the_end(&s, &r, &o);
		for (unsigned number = 0; number <= 3; number++) {
			turns += windows[number].full_turns;
			calls += windows[number].tx_full;
		}
		/* The last refusal may be in a turn that has not begun. */
		CHECK(port.takes == PORT_BURST ? !turns
		                               : turns == s.next_sequence / SENDER_TURN ||
		                                         turns == s.next_sequence / SENDER_TURN + 1);
		CHECK(turns <= calls);
		sender_free(&s);
	}
}

static void ignore(void *context, uint16_t number, const struct window_tx *w)
{
	(void)context;
	(void)number;
	(void)w;
}

/* Stopped while late: what was due by then is missing. */
static void stopped_in_a_stall(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 0.01,
	        .rate_pps = 8000,
	        .io.stream_id = 1};
	struct run r = {.o = &o, .ops = &PORT};
	struct sender s;
	uint64_t before, after;

	port_start(&s, &r, 20, ignore);
	s.insists = true;
	port.takes = 0;
	while (clock_cycles() - r.start < clock_ns_to_cycles(&r.clock, 25e6))
		sender_step(&s);
	before = clock_cycles();
	sender_cut(&s);
	after = clock_cycles();
	CHECK_EQUAL(s.total.scheduled, 0);
	CHECK(s.total.not_offered + PORT_BURST >=
	        clock_cycles_to_ns(&r.clock, before - r.start) * 8 / 1000000);
	CHECK(s.total.not_offered <= clock_cycles_to_ns(&r.clock, after - r.start) * 8 / 1000000);
	sender_free(&s);
}

/* Three answers: the first of a burst, another one of it, and one of the warm-up. */
static void first_frames_have_a_histogram(void)
{
	enum { FRAMES = 3 };
	struct clock clock = {.hz = 1000000000, .ns_per_cycle = 1};
	uint64_t *sent_at = calloc(TRACKER_HORIZON, sizeof(*sent_at));
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
	a_sender_that_waits_sleeps();
	the_first_of_a_burst();
	refusals_are_idle();
	what_was_refused_is_late();
	turns_of_a_full_port();
	what_is_too_late_is_not_offered();
	stopped_in_a_stall();
	first_frames_have_a_histogram();
	return 0;
}
