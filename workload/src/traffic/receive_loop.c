/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/receive_loop.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* After a poll that returned less than a burst, a counting receiver does not touch its socket for this time.
 * Looking for each frame as it arrives makes it compete with the sender's core for the cache lines of the
 * queue, and the path then delivers a tenth less. The buffer holds thousands of frames, and nobody waits for
 * an answer. */
#define SOCKET_REST_NS 25000
/* How long a receiver that shares its CPU sleeps between two polls before the start. No frames arrive yet,
 * and the other processes still have to start. */
#define START_REST_NS 1000000

static bool is_server(const struct receive_loop *s)
{
	return s->r->o->app->round_trip;
}

static void write_window(struct receive_loop *s, uint16_t number, const struct window_rx *w, bool provisional)
{
	struct run *r = s->r;
	struct json *j = &r->json;

	json_begin_line(j, "window");
	json_string(j, "role", s->role);
	json_u64(j, "stream", r->o->io.stream_id);
	json_u64(j, "window", number);
	json_bool(j, "provisional", provisional);
	receiver_window_json(&s->rx, j, w);
	window_cycles_json(j, &r->clock, &w->cycles, !r->o->io.blocking);
	if (is_server(s)) {
		json_u64(j, "reflected", w->reflected);
		json_u64(j, "refused", w->refused);
	}
	json_u64(j, "involuntary_switches", w->involuntary_switches);
	json_u64(j, "cpu_ns", w->cpu_ns);
	json_end_line(j);
	output_line(&r->output, j->text, j->length);
}

static void write_provisional(void *context, uint16_t number, const struct window_rx *w)
{
	struct receive_loop *s = context;

	if (!s->r->o->silent)
		write_window(s, number, w, true);
}

static void write_end(struct receive_loop *s)
{
	struct receiver *rx = &s->rx;
	struct json *j = &s->r->json;
	struct window_rx total = {0};

	clock_anchor(&s->r->clock);
	for (unsigned number = 1; number <= rx->highest; number++)
		write_window(s, (uint16_t)number, &rx->windows[number], false);
	json_begin_line(j, "summary");
	json_string(j, "role", s->role);
	json_u64(j, "stream", s->r->o->io.stream_id);
	json_string(j, "reason", run_reason(s->r, rx->ended));
	json_u64(j, "windows", rx->highest);
	receiver_summary(rx, j);
	for (unsigned i = 0; i <= rx->highest; i++)
		window_rx_add(&total, &rx->windows[i]);
	window_cycles_json(j, &s->r->clock, &total.cycles, !s->r->o->io.blocking);
	if (is_server(s)) {
		json_u64(j, "reflected", total.reflected);
		json_u64(j, "refused", total.refused);
	}
	run_finish_summary(s->r);
}

/* Whether --warmup and --duration, counted from the start, are over. */
static bool duration_over(struct run *r, uint64_t now)
{
	const struct options *o = r->o;

	if (o->duration_s <= 0 || !run_note_start(r) || (int64_t)(now - r->start) < 0)
		return false;
	return now - r->start >= clock_ns_to_cycles(&r->clock, (o->duration_s + o->warmup_s) * 1e9);
}

static uint64_t rest_cycles(const struct receive_loop *s)
{
	const struct options *o = s->r->o;
	bool polls_socket =
	        o->backend->flags & IO_SHARED_QUEUE && !o->io.blocking && o->io.wait == IO_WAIT_POLL;

	/* With --yield the sender shares the core, and resting on it would delay the sender. */
	return polls_socket && !is_server(s) && !o->yield_every
	               ? clock_ns_to_cycles(&s->r->clock, SOCKET_REST_NS)
	               : 0;
}

/* Returns the planned cycles of the rest. The time in excess of them was taken by others. */
static uint64_t rest_until(uint64_t until)
{
	int64_t left = (int64_t)(until - clock_cycles());

	while ((int64_t)(until - clock_cycles()) > 0)
		_mm_pause();
	return left > 0 ? (uint64_t)left : 0;
}

/* Whether there is time for a sleep before the start. A process that polls as soon as it knows the start line
 * can keep later ones from receiving theirs: Linux 6.18 did so until all other processes had ended. */
static bool may_sleep(struct run *r)
{
	uint64_t at;

	if (!r->awaited_ns)
		return false;
	if (r->awaited_ns == UINT64_MAX && control_started(&at))
		r->awaited_ns = at;
	if (clock_monotonic_ns() + 2 * START_REST_NS < r->awaited_ns)
		return true;
	r->awaited_ns = 0;
	return false;
}

/* Yields the CPU, or sleeps before the start. Returns the cycles that other processes had. */
static uint64_t yield_cycles(struct run *r)
{
	const struct timespec pause = {.tv_nsec = START_REST_NS};
	uint64_t before = clock_cycles();

	if (__builtin_expect(may_sleep(r), 0))
		nanosleep(&pause, NULL);
	else
		sched_yield();
	return clock_cycles() - before;
}

/* Sleeps until a frame arrives or the loop has to end, or yields; not while it polls alone. Returns the
 * cycles. */
static uint64_t give_away(struct receive_loop *s, uint64_t now)
{
	struct run *r = s->r;
	uint64_t until = s->rx.deadline ? s->rx.deadline : now + r->clock.hz;
	uint64_t slept = run_rest(r, IO_RX, until);

	return slept || !r->o->yield_every ? slept : yield_cycles(r);
}

/* Ends a lap of the cycle account. Laps after the end of the measurement are not counted. */
static void end_lap(struct receive_loop *s, struct loop_meter *meter, uint64_t now, unsigned frames)
{
	struct loop_meter_cycles after = {0};

	loop_meter_lap(meter, now, frames, s->rx.deadline ? &after : &s->rx.windows[s->rx.current].cycles);
}

static void loop(struct receive_loop *s, receive_burst burst)
{
	struct run *r = s->r;
	struct io_frame frames[IO_BURST_MAX];
	const uint64_t resting = rest_cycles(s);
	struct loop_meter meter;

	loop_meter_start(&meter, clock_cycles(), clock_ns_to_cycles(&r->clock, LOOP_METER_GAP_NS));
	s->rx.meter = &meter;

	for (;;) {
		int n = r->ops->rx_poll(r->io, frames, r->o->io.burst);
		uint64_t now = clock_cycles();

		if (n > 0) {
			r->moved = now;
			burst(s, frames, (unsigned)n, now);
			end_lap(s, &meter, clock_cycles(), (unsigned)n);
		} else if (n < 0) {
			run_failed(r, "receive", errno);
		} else {
			end_lap(s, &meter, now, 0);
			receiver_take(&s->rx, NULL, 0, now, NULL);
			meter.given_away += give_away(s, now);
		}
		if (r->error.call || receiver_done(&s->rx, now))
			break;
		if (duration_over(r, now))
			receiver_begin_drain(&s->rx, now, "duration");
		if (run_announce_due(r, now))
			run_announce(r);
		if (resting && n < (int)r->o->io.burst) {
			meter.excused += rest_until(now + resting);
			end_lap(s, &meter, clock_cycles(), 0);
		}
	}
	s->rx.meter = NULL;
}

int serve(struct run *r, const char *role, receive_burst burst)
{
	struct receive_loop s = {.r = r, .role = role};

	if (!receiver_init(&s.rx, r, write_provisional, &s)) {
		fprintf(stderr, "icbench-workload %s: out of memory\n", r->o->app_name);
		return EXIT_SETUP;
	}
	loop(&s, burst);
	write_end(&s);
	receiver_free(&s.rx);
	return r->error.call ? EXIT_IO : EXIT_OK;
}
