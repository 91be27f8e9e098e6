/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/client_times.h"
#include "traffic/receiver.h"
#include "traffic/sender.h"

/* A client keeps its schedule through a stall. Its requests are then late, as they would be for a user who
 * waits for the answer. A request that is this late counts as lost; the time is the one for which RFC 2544
 * waits for frames. */
#define BACKLOG_S 2.0

/* In ns. The client does not wait longer than this for an answer, at the maximum rate and when catching
 * up. */
#define ANSWER_PATIENCE_NS 10e6

struct client {
	struct run *r;
	struct sender tx;
	struct receiver rx;
	struct client_times times;
	uint16_t last_window; /* the last one that the sender has ended */
	bool threaded;        /* --blocking: a separate thread receives answers */
	pthread_t thread;
	pthread_mutex_t lock; /* protects rx and times while the thread runs */
	uint64_t usual;       /* outstanding frames when it was last on time */
	uint64_t held_since;  /* cycles; 0: not held back */
	atomic_bool finish;
	atomic_int thread_errno;
};

static void write_window(struct client *c, uint16_t number, bool provisional)
{
	struct json *j = &c->r->json;
	const struct window_tx *tx = &c->times.due[number];
	const struct window_rx *rx = &c->rx.windows[number];
	struct client_rtt rtt = client_times_window(&c->times, number, !provisional);

	window_begin_json(j, "client", c->r->o->io.stream_id, number, tx);
	json_bool(j, "provisional", provisional);
	receiver_window_json(&c->rx, j, rx);
	window_cycles_json(j, &c->r->clock, &tx->cycles, !c->r->o->io.blocking);
	/* With one thread, its switches are already counted by the sender. */
	json_u64(j, "involuntary_switches",
	        tx->involuntary_switches + (c->threaded ? rx->involuntary_switches : 0));
	json_u64(j, "cpu_ns", tx->cpu_ns);
	client_window_json(j, &rtt);
	json_u64(j, "rtt_from", c->times.from);
	json_end_line(j);
	output_line(&c->r->output, j->text, j->length);
}

static void on_window(void *context, uint16_t number, const struct window_tx *w)
{
	struct client *c = context;

	c->times.due[number] = *w;
	c->last_window = number;
	if (control_measure_asked()) {
		/* Resetting histograms takes 0.1 ms, which would delay frames. So they begin with the window
		 * after the next one. */
		pthread_mutex_lock(&c->lock);
		client_times_restart(&c->times, (uint16_t)(number + 2));
		pthread_mutex_unlock(&c->lock);
	}
	if (c->r->o->silent)
		return;
	pthread_mutex_lock(&c->lock);
	write_window(c, number, true);
	pthread_mutex_unlock(&c->lock);
}

/* Receives what has arrived. Returns how many frames, or -1 with errno. */
static int receive(struct client *c)
{
	struct run *r = c->r;
	struct io_frame frames[IO_BURST_MAX];
	uint8_t verdicts[IO_BURST_MAX];
	int n = r->ops->rx_poll(r->io, frames, r->o->io.burst);
	uint64_t now = clock_cycles();

	if (n < 0)
		return n;
	if (!c->threaded) {
		sender_lap(&c->tx, now, c->tx.moved + (unsigned)n);
		c->tx.moved = (unsigned)n;
		r->moved = n ? now : r->moved;
	}
	if (c->threaded)
		pthread_mutex_lock(&c->lock);
	receiver_take(&c->rx, frames, (unsigned)n, now, verdicts);
	client_times_take(&c->times, frames, verdicts, (unsigned)n, now);
	if (c->threaded)
		pthread_mutex_unlock(&c->lock);
	if (n)
		r->ops->rx_release(r->io);
	return n;
}

static void *receive_until_finish(void *context)
{
	struct client *c = context;

	c->rx.involuntary_before = run_involuntary_switches();
	while (!atomic_load_explicit(&c->finish, memory_order_relaxed)) {
		if (receive(c) < 0) {
			atomic_store(&c->thread_errno, errno);
			break;
		}
	}
	return NULL;
}

static bool start_thread(struct client *c)
{
	sigset_t all, old;
	int error;

	sigfillset(&all); /* the sending thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&c->thread, NULL, receive_until_finish, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error == 0;
}

/* Receives answers. Returns whether there were any; a receiving thread has them all. The error of that thread
 * is reported here, by the thread that writes. */
static bool poll_answers(struct client *c)
{
	int error = atomic_load_explicit(&c->thread_errno, memory_order_relaxed), n;

	if (error)
		run_failed(c->r, "receive", error);
	if (c->threaded)
		return false;
	n = receive(c);
	if (n < 0)
		run_failed(c->r, "receive", errno);
	return n > 0;
}

/* Returns how many distinct frames have returned. */
static uint64_t answered(struct client *c)
{
	uint64_t n;

	if (!c->threaded)
		return c->rx.received;
	pthread_mutex_lock(&c->lock);
	n = c->rx.received;
	pthread_mutex_unlock(&c->lock);
	return n;
}

static void drain(struct client *c)
{
	uint64_t deadline = clock_cycles() + clock_ns_to_cycles(&c->r->clock, c->r->o->drain_s * 1e9);

	while (answered(c) < c->tx.next_sequence && !control_abandon && !c->r->error.call &&
	        clock_cycles() < deadline) {
		if (c->threaded)
			sched_yield();
		if (!poll_answers(c))
			run_rest(c->r, IO_RX, deadline);
	}
}

/* Returns how many frames were sent after the last one that has returned. */
static uint64_t under_way(struct client *c)
{
	uint64_t next;

	if (c->threaded)
		pthread_mutex_lock(&c->lock);
	next = tracker_next(c->rx.tracker);
	if (c->threaded)
		pthread_mutex_unlock(&c->lock);
	return next < c->tx.next_sequence ? c->tx.next_sequence - next : 0;
}

/* Whether a client that catches up has to wait. It has at most as many outstanding frames as a ring holds, or
 * twice as many as usual on this path: a larger burst would be lost on the path, and the client would cause
 * the loss. The wait for answers is limited. */
static bool held_back(struct client *c)
{
	uint64_t now = clock_cycles(), frames, most;

	if (!sender_behind(&c->tx, now)) {
		c->held_since = 0;
		return false;
	}
	frames = under_way(c);
	most = 2 * c->usual > c->r->o->io.ring ? 2 * c->usual : c->r->o->io.ring;
	if (!frames || frames + c->r->o->io.burst <= most) {
		c->held_since = 0;
		return false;
	}
	if (!c->held_since) {
		c->held_since = now;
		c->tx.now.tx_full++;
	}
	if (now - c->held_since < clock_ns_to_cycles(&c->r->clock, ANSWER_PATIENCE_NS))
		return true;
	c->held_since = now;
	return false;
}

/* Waits for the answers to the last burst, since at the maximum rate only one burst is outstanding: otherwise
 * the queues would be measured. It waits for the last frame instead of a count, because late answers would
 * let more and more bursts be outstanding. Returns false on an error or a stop. */
static bool await_answers(struct client *c)
{
	uint64_t deadline = clock_cycles() + clock_ns_to_cycles(&c->r->clock, ANSWER_PATIENCE_NS);

	while (under_way(c) && clock_cycles() < deadline) {
		if (!poll_answers(c))
			c->tx.meter.given_away += run_rest(c->r, IO_RX, deadline);
		if (c->r->error.call || control_stopped())
			return false;
		if (c->r->o->yield_every)
			sender_yield(&c->tx);
	}
	return true;
}

/* Sleeps until an answer arrives or a request is due. */
static void rest(struct client *c, bool held)
{
	const uint64_t patience = clock_ns_to_cycles(&c->r->clock, ANSWER_PATIENCE_NS);

	if (held)
		c->tx.meter.given_away += run_rest(c->r, IO_RX, c->held_since + patience);
	else
		sender_rest(&c->tx, IO_RX);
}

static void send_all(struct client *c)
{
	struct run *r = c->r;
	enum sender_step step;
	bool held;

	if (!run_wait_start(r))
		return;
	sender_start(&c->tx);
	do {
		if (c->tx.pace.unlimited && !await_answers(c))
			break;
		step = SENDER_IDLE;
		held = held_back(c);
		if (!held)
			step = sender_step(&c->tx);
		else if (r->o->yield_every)
			sender_yield(&c->tx);
		if (step == SENDER_SENT && !sender_behind(&c->tx, clock_cycles()))
			c->usual = under_way(c);
		if (!poll_answers(c) && (step == SENDER_IDLE || c->tx.full))
			rest(c, held);
		if (r->error.call)
			break;
	} while (step != SENDER_ENDED && !control_stopped());
	sender_cut(&c->tx);
	/* Further polls wait for answers and are not measured. */
	pthread_mutex_lock(&c->lock);
	receiver_begin_drain(&c->rx, clock_cycles(), NULL);
	pthread_mutex_unlock(&c->lock);
	drain(c);
	sender_end_mark(&c->tx);
}

static void write_end(struct client *c)
{
	struct json *j = &c->r->json;

	clock_anchor(&c->r->clock);
	for (unsigned number = 1; number <= c->last_window; number++)
		write_window(c, (uint16_t)number, false);
	json_begin_line(j, "summary");
	json_string(j, "role", "client");
	json_u64(j, "stream", c->r->o->io.stream_id);
	json_string(j, "reason", run_reason(c->r, c->tx.ended));
	json_u64(j, "windows", c->tx.windows);
	sender_summary(&c->tx, j);
	receiver_summary(&c->rx, j);
	json_u64(j, "unanswered", c->tx.total.sent - c->rx.received);
	json_u64(j, "rtt_from", c->times.from);
	histogram_json(j, "rtt_ns", &c->times.intended);
	histogram_json(j, "rtt_actual_ns", &c->times.actual);
	histogram_json(j, "rtt_first_ns", &c->times.first);
	window_cycles_json(j, &c->r->clock, &c->tx.total.cycles, !c->r->o->io.blocking);
	run_finish_summary(c->r);
}

static bool set_up(struct client *c, struct run *r)
{
	*c = (struct client){.r = r, .threaded = r->o->io.blocking && r->o->backend->flags & IO_SOCKET};
	pthread_mutex_init(&c->lock, NULL);
	if (!sender_init(&c->tx, r, BACKLOG_S, on_window, c) || !sender_keep_times(&c->tx))
		return false;
	c->tx.insists = !c->tx.pace.unlimited;
	return receiver_init(&c->rx, r, NULL, NULL) &&
	       client_times_init(&c->times, &r->clock, r->o->histogram_digits, c->tx.sent_at);
}

static void tear_down(struct client *c)
{
	client_times_free(&c->times);
	receiver_free(&c->rx);
	sender_free(&c->tx);
	pthread_mutex_destroy(&c->lock);
}

static int loop(struct run *r)
{
	struct client c;

	if (!set_up(&c, r)) {
		fprintf(stderr, "icbench-workload %s: out of memory\n", r->o->app_name);
		tear_down(&c);
		return EXIT_SETUP;
	}
	if (c.threaded && !start_thread(&c)) {
		fprintf(stderr, "icbench-workload %s: no thread to receive with\n", r->o->app_name);
		tear_down(&c);
		return EXIT_SETUP;
	}
	send_all(&c);
	if (c.threaded) {
		atomic_store(&c.finish, true);
		pthread_join(c.thread, NULL);
	}
	write_end(&c);
	sender_repeat_end_mark(&c.tx);
	tear_down(&c);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

const struct application app_client = {.name = "client", .sends = true, .round_trip = true, .loop = loop};
