/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives at once, in one loop on one port, as its peer does. */
#include "app/apps.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "traffic/receiver.h"
#include "traffic/sender.h"

/* As in send.c. */
#define BACKLOG_WINDOWS 0.1
/* Polls between two sent bursts. If the peer sends faster, or the loop was off its CPU, waiting frames must
 * not overflow the ring, nor delay the next burst for long. */
#define POLLS_A_TURN 8
/* The number of end marks, and the pauses before each. The loop continues to receive meanwhile. */
#define MARKS 3u
/* In ns, between two looks for the next end mark. */
#define DRAIN_REST_NS 1e6
static const double MARK_PAUSE_NS[MARKS] = {0, 10e6, 40e6};

struct duplex {
	struct run *r;
	struct sender tx;
	struct receiver rx;
	struct window_tx *sent; /* by window, once it has ended; WINDOW_COUNT of them */
	uint16_t last_window;   /* the last one that the sender has ended */
	bool measuring;         /* polls are laps of the sender's cycle account */
	unsigned marks;
	uint64_t next_mark; /* cycles */
};

static void write_window(struct duplex *d, uint16_t number, bool provisional)
{
	struct json *j = &d->r->json;
	const struct window_tx *tx = &d->sent[number];

	window_begin_json(j, "duplex", d->r->o->io.stream_id, number, tx);
	json_bool(j, "provisional", provisional);
	receiver_window_json(&d->rx, j, &d->rx.windows[number]);
	window_cycles_json(j, &d->r->clock, &tx->cycles, true);
	json_u64(j, "involuntary_switches", tx->involuntary_switches);
	json_u64(j, "cpu_ns", tx->cpu_ns);
	json_end_line(j);
	output_line(&d->r->output, j->text, j->length);
}

static void on_window(void *context, uint16_t number, const struct window_tx *w)
{
	struct duplex *d = context;

	d->sent[number] = *w;
	d->last_window = number;
	if (!d->r->o->silent)
		write_window(d, number, true);
}

/* Polls once. Returns the number of frames. */
static unsigned receive(struct duplex *d)
{
	struct run *r = d->r;
	struct io_frame frames[IO_BURST_MAX];
	int n = r->ops->rx_poll(r->io, frames, r->o->io.burst);
	uint64_t now = clock_cycles();

	if (n < 0) {
		run_failed(r, "receive", errno);
		return 0;
	}
	if (d->measuring) {
		sender_lap(&d->tx, now, d->tx.moved + (unsigned)n);
		d->tx.moved = (unsigned)n;
	}
	receiver_take(&d->rx, frames, (unsigned)n, now, NULL);
	if (n) {
		r->ops->rx_release(r->io);
		r->moved = now;
	}
	return (unsigned)n;
}

/* Returns whether anything arrived. */
static bool receive_turn(struct duplex *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < POLLS_A_TURN && !d->r->error.call; i++) {
		unsigned got = receive(d);

		n += got;
		if (got < d->r->o->io.burst)
			break;
	}
	return n > 0;
}

/* Polls until the start. The ends do not start in the same cycle, and a sleeping end would find its ring
 * full. */
static void receive_until_start(struct duplex *d)
{
	struct run *r = d->r;

	while ((int64_t)(clock_cycles() - r->start) < 0 && !control_stopped() && !r->error.call) {
		if (!receive_turn(d) && !run_rest(r, IO_RX, r->start) && r->o->yield_every)
			sched_yield();
	}
}

static void exchange(struct duplex *d)
{
	const struct run *r = d->r;
	enum sender_step step;

	sender_start(&d->tx);
	d->measuring = true;
	do {
		step = sender_step(&d->tx);
		if (!receive_turn(d) && (step == SENDER_IDLE || d->tx.full))
			sender_rest(&d->tx, IO_RX);
	} while (step != SENDER_ENDED && !control_stopped() && !r->error.call);
	d->measuring = false;
	sender_cut(&d->tx);
}

/* Offers the end mark if it is due. The first one stays due until the port takes it. */
static void mark_when_due(struct duplex *d, uint64_t now)
{
	if (d->marks == MARKS || now < d->next_mark)
		return;
	if (!run_offer_control(d->r, d->tx.next_sequence + 1) && !d->marks)
		return;
	if (++d->marks < MARKS)
		d->next_mark = now + clock_ns_to_cycles(&d->r->clock, MARK_PAUSE_NS[d->marks]);
}

/* Receives until all frames of the peer have arrived and it knows the number of ours, or until --drain after
 * the peer's last frame. */
static void drain(struct duplex *d)
{
	struct run *r = d->r;
	struct receiver *rx = &d->rx;
	const uint64_t patience = clock_ns_to_cycles(&r->clock, r->o->drain_s * 1e9);
	uint64_t now = clock_cycles(), received;

	receiver_begin_drain(rx, now, NULL);
	while (!r->error.call && !control_abandon) {
		received = rx->received;
		mark_when_due(d, now);
		if (!receive_turn(d))
			run_rest(r, IO_RX, now + clock_ns_to_cycles(&r->clock, DRAIN_REST_NS));
		now = clock_cycles();
		if (rx->received != received && !rx->end_mark && !control_stopped())
			rx->deadline = now + patience; /* the peer is still sending */
		if (receiver_done(rx, now) && (d->marks == MARKS || now >= rx->deadline))
			break;
		if (r->ops->peer_left && r->ops->peer_left(r->io))
			break;
		if (r->o->yield_every)
			sched_yield();
	}
}

static void write_end(struct duplex *d)
{
	struct json *j = &d->r->json;
	const uint16_t last = d->rx.highest > d->last_window ? d->rx.highest : d->last_window;

	clock_anchor(&d->r->clock);
	for (unsigned number = 1; number <= last; number++)
		write_window(d, (uint16_t)number, false);
	json_begin_line(j, "summary");
	json_string(j, "role", "duplex");
	json_u64(j, "stream", d->r->o->io.stream_id);
	json_string(j, "reason", run_reason(d->r, d->tx.ended));
	json_u64(j, "windows", last);
	sender_summary(&d->tx, j);
	receiver_summary(&d->rx, j);
	window_cycles_json(j, &d->r->clock, &d->tx.total.cycles, true);
	run_finish_summary(d->r);
}

static bool set_up(struct duplex *d, struct run *r)
{
	*d = (struct duplex){.r = r};
	d->sent = calloc(WINDOW_COUNT, sizeof(*d->sent));
	return d->sent && sender_init(&d->tx, r, BACKLOG_WINDOWS * r->o->window_s, on_window, d) &&
	       receiver_init(&d->rx, r, NULL, NULL);
}

static void tear_down(struct duplex *d)
{
	receiver_free(&d->rx);
	sender_free(&d->tx);
	free(d->sent);
}

static int loop(struct run *r)
{
	struct duplex d;

	if (!set_up(&d, r)) {
		fprintf(stderr, "icbench-workload %s: out of memory\n", r->o->app_name);
		tear_down(&d);
		return EXIT_SETUP;
	}
	if (run_learn_start(r)) {
		receive_until_start(&d);
		if (!control_stopped() && !r->error.call)
			exchange(&d);
		drain(&d);
	}
	write_end(&d);
	tear_down(&d);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

static bool fits(const struct options *o, char *err, size_t err_len)
{
	if (!o->io.blocking)
		return true;
	snprintf(err, err_len, "%.40s sends and receives in one loop: leave out --blocking", o->app_name);
	return false;
}

const struct application app_duplex = {
        .name = "duplex", .sends = true, .duplex = true, .fits = fits, .loop = loop};
