/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/sender.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/frame.h"
#include "io/prepare.h"

#define LATENESS_DIGITS 2
/* Pauses before the second and the third end mark, long enough for a full queue to drain. */
static const long END_MARK_PAUSE_NS[] = {10000000, 40000000};

bool sender_init(struct sender *s, struct run *r, double backlog_s, sender_window on_window, void *context)
{
	const struct options *o = r->o;
	uint64_t backlog = clock_ns_to_cycles(&r->clock, backlog_s * 1e9);

	*s = (struct sender){.r = r, .full_turn = UINT64_MAX, .on_window = on_window, .context = context};
	pace_init(&s->pace, r->clock.hz, o->rate_pps, o->io.burst, o->catch_up, backlog);
	/* Rounded up: not before the first window, whose start window_start() rounds. */
	pace_follow(&s->pace, o->trace, o->trace_seconds,
	        (uint64_t)ceill((long double)o->warmup_s * (long double)r->clock.hz));
	return histogram_init(&s->lateness, LATENESS_DIGITS) &&
	       histogram_init(&s->lateness_total, LATENESS_DIGITS) &&
	       histogram_init(&s->spacing, LATENESS_DIGITS);
}

void sender_free(struct sender *s)
{
	histogram_free(&s->lateness);
	histogram_free(&s->lateness_total);
	histogram_free(&s->spacing);
	free(s->sent_at);
	s->sent_at = NULL;
}

bool sender_keep_times(struct sender *s)
{
	s->sent_at = calloc(TRACKER_HORIZON, sizeof(*s->sent_at));
	return s->sent_at != NULL;
}

void sender_start(struct sender *s)
{
	const struct options *o = s->r->o;

	pace_start(&s->pace, s->r->start);
	window_start(&s->cursor, s->r->start, s->r->clock.hz, o->warmup_s, o->window_s, o->duration_s);
	s->train_left = sender_train(o, s->cursor.number);
	s->involuntary_before = run_involuntary_switches();
	s->cpu_ns_before = run_cpu_ns();
	loop_meter_start(&s->meter, clock_cycles(), clock_ns_to_cycles(&s->r->clock, LOOP_METER_GAP_NS));
}

uint64_t sender_train(const struct options *o, uint16_t window)
{
	unsigned step;

	if (!o->train_from || o->train_steps < 2 || !window)
		return o->train_from;
	step = (window - 1u) % o->train_steps;
	return (uint64_t)llround(
	        o->train_from * pow((double)o->train_to / o->train_from, step / (o->train_steps - 1.0)));
}

/* Ends the current window, which lasts until `end` (cycles), and resets the counters. */
static void close_window(struct sender *s, uint64_t end)
{
	const struct clock *clock = &s->r->clock;
	uint64_t began = clock_thread_ns(), involuntary = run_involuntary_switches(), cpu_ns = run_cpu_ns();
	struct window_tx *w = &s->now;

	w->involuntary_switches = involuntary - s->involuntary_before;
	s->involuntary_before = involuntary;
	w->cpu_ns = cpu_ns - s->cpu_ns_before;
	s->cpu_ns_before = cpu_ns;
	if (s->lateness.count) {
		w->lateness_p99_ns = histogram_quantile_any(&s->lateness, 0.99);
		w->lateness_max_ns = s->lateness.max;
		histogram_add(&s->lateness_total, &s->lateness);
		histogram_reset(&s->lateness);
	}
	loop_meter_learn(&s->meter, &w->cycles);
	window_tx_add(&s->total, w);
	if (s->cursor.number != FRAME_WINDOW_WARMUP) {
		clock_anchor(&s->r->clock);
		w->start_ns = clock_to_monotonic(clock, s->cursor.start);
		w->duration_ns = clock_cycles_to_ns(clock, end - s->cursor.start);
		s->windows++;
		s->on_window(s->context, s->cursor.number, w);
	}
	*w = (struct window_tx){0};
	/* Time that other processes took meanwhile, or that a reader made us wait, stays a gap. */
	s->meter.excused += clock_ns_to_cycles(clock, (double)(clock_thread_ns() - began));
}

/* Enters the window of the moment `at`. Returns false if the last window has ended. */
static bool enter_window(struct sender *s, uint64_t at)
{
	while (at >= s->cursor.end) {
		close_window(s, s->cursor.end);
		if (!window_next(&s->cursor)) {
			s->ended = "duration";
			return false;
		}
		s->train_left = sender_train(s->r->o, s->cursor.number);
	}
	return true;
}

void sender_lap(struct sender *s, uint64_t now, unsigned frames)
{
	loop_meter_lap(&s->meter, now, frames, &s->now.cycles);
	s->moved = 0;
}

void sender_rest(struct sender *s, unsigned events)
{
	uint64_t until = s->cursor.end;

	if ((int64_t)(s->r->start - clock_cycles()) > 0)
		until = s->r->start;
	else if (!s->full && !s->pace.unlimited && (int64_t)(s->pace.next - until) < 0)
		until = s->pace.next;
	s->meter.given_away += run_rest(s->r, s->full ? events | IO_TX : events, until);
}

void sender_yield(struct sender *s)
{
	uint64_t before = clock_cycles();

	sched_yield();
	s->meter.given_away += clock_cycles() - before;
	s->now.yields++;
	s->since_yield = 0;
}

static void fill_padding(const struct sender *s, uint8_t *payload[], unsigned n)
{
	const struct io_config *c = &s->r->o->io;
	const uint32_t overhead = frame_overhead_bytes(&c->ends.header);

	for (unsigned i = 0; i < n; i++) {
		uint64_t sequence = s->next_sequence + i;
		uint32_t size = pattern_size(&c->pattern, s->cursor.number, sequence, c->packet_size);

		frame_fill_padding(payload[i], size - overhead, sequence);
	}
}

static void keep_times(struct sender *s, unsigned n)
{
	uint64_t now = clock_cycles();

	for (unsigned i = 0; i < n; i++)
		s->sent_at[(s->next_sequence + i) % TRACKER_HORIZON] =
		        sender_sent_at(now, i == 0 && !s->begun);
}

static void stamp(struct sender *s, uint8_t *payload[], unsigned n, uint64_t intended)
{
	const struct io_config *c = &s->r->o->io;
	uint64_t tag = frame_tag(c->stream_id, s->cursor.number), time_be = htobe64(intended);

	if (prepare_needed(c))
		prepare_frames(c, s->r->ops, s->r->io, payload, n, s->next_sequence);
	for (unsigned i = 0; i < n; i++)
		frame_stamp_tagged(payload[i], tag, s->next_sequence + i, time_be);
	if (c->check_payload)
		fill_padding(s, payload, n);
	if (c->acl.percent)
		prepare_acl(c, payload, n, s->next_sequence);
	if (s->r->ops->sees_l2 && (c->check_payload || frame_needs_checksum(&c->ends.header)))
		for (unsigned i = 0; i < n; i++)
			prepare_checksum(c, s->r->ops, payload[i]);
	if (s->sent_at)
		keep_times(s, n);
}

static void note_dropped(struct sender *s)
{
	const struct options *o = s->r->o;
	uint64_t before = s->dropped.acl_drops;

	if (!o->io.acl.percent)
		return;
	acl_walk(&s->dropped, &o->io.acl, &o->io.pattern, s->next_sequence);
	s->now.acl_drops += s->dropped.acl_drops - before;
}

static void count_offer(struct sender *s, unsigned n, unsigned taken)
{
	const bool again = s->pace.unlimited || s->insists;

	/* Frames that are offered again count when they are taken; those of an unlimited sender are stamped
	 * anew. */
	s->now.scheduled += again ? taken : n;
	s->now.refused += again ? 0 : n - taken;
	s->now.sent += taken;
	s->next_sequence += taken;
	note_dropped(s);
	s->since_yield += taken;
	s->moved = taken;
	s->now.bursts += taken > 0 && !s->begun;
	if (s->insists) {
		s->owed = n - taken;
		s->begun = s->owed && (s->begun || taken > 0);
	}
	if (s->r->o->train_from)
		s->train_left -= taken;
}

static void count_refusal(struct sender *s)
{
	uint64_t turn = s->next_sequence / SENDER_TURN;

	s->now.tx_full++;
	s->now.full_turns += s->full_turn != turn;
	s->full_turn = turn;
}

/* Offers n frames that were due at `intended`. Returns false on an I/O error. */
static bool offer(struct sender *s, unsigned n, uint64_t intended)
{
	struct run *r = s->r;
	const uint32_t yield_every = r->o->yield_every;
	uint8_t *payload[IO_BURST_MAX];
	unsigned lent = r->ops->tx_acquire(r->io, payload, n);
	int taken = 0;

	if (lent) {
		stamp(s, payload, lent, intended);
		taken = r->ops->tx_commit(r->io, lent);
		if (taken < 0) {
			run_failed(r, "send", errno);
			return false;
		}
	}
	s->full = (unsigned)taken < n && (s->pace.unlimited || s->insists);
	count_offer(s, n, (unsigned)taken);
	if ((unsigned)taken < n)
		count_refusal(s);
	if (yield_every && ((unsigned)taken < n || (yield_every > 1 && s->since_yield >= yield_every)))
		sender_yield(s);
	return true;
}

/* Both bursts were due at absolute times, so the difference of their latenesses is the error of their
 * spacing. */
static void note_lateness(struct sender *s, uint64_t ns)
{
	uint64_t before = s->last_lateness_ns;

	histogram_record(&s->lateness, ns, 1);
	if (s->lateness.count + s->lateness_total.count > 1)
		histogram_record(&s->spacing, ns > before ? ns - before : before - ns, 1);
	s->last_lateness_ns = ns;
}

/* Returns how many frames the next burst has, limited by --count and --train. */
static unsigned burst_size(const struct sender *s)
{
	const struct options *o = s->r->o;
	uint64_t left = o->count ? o->count - (s->total.scheduled + s->now.scheduled) : UINT64_MAX;

	if (o->train_from && left > s->train_left)
		left = s->train_left;
	return left > o->io.burst ? o->io.burst : (unsigned)left;
}

/* Gives up the rest of the next burst, in the window in which it was due. Returns false if the last window
 * has ended. */
static bool give_up(struct sender *s)
{
	if (!enter_window(s, s->pace.next))
		return false;
	s->now.not_offered += s->owed ? s->owed : s->pace.burst;
	s->owed = 0;
	s->begun = false;
	pace_next(&s->pace);
	return true;
}

bool sender_behind(const struct sender *s, uint64_t now)
{
	return !s->pace.unlimited && (int64_t)(now - s->pace.next) >= (int64_t)s->pace.step;
}

/* No burst is due yet. */
static enum sender_step wait_for_burst(struct sender *s, uint64_t now)
{
	/* A window ends on time even if the first burst of the next one is far off. */
	if (now >= s->cursor.end && s->pace.next >= s->cursor.end && !enter_window(s, now))
		return SENDER_ENDED;
	if (s->r->ops->tx_flush)
		s->r->ops->tx_flush(s->r->io);
	if (s->r->o->yield_every)
		sender_yield(s);
	return SENDER_IDLE;
}

/* Counts how late a new burst is; one that is offered again has been counted. */
static void note_due(struct sender *s, const struct pace_due *due)
{
	if (s->pace.unlimited || s->owed)
		return;
	note_lateness(s, clock_cycles_to_ns(&s->r->clock, due->lateness));
	if (due->due_frames > s->pace.burst && due->due_frames > s->now.catch_up_max)
		s->now.catch_up_max = due->due_frames;
}

static bool count_reached(struct sender *s)
{
	const uint64_t count = s->r->o->count;

	if (!count || s->total.scheduled + s->now.scheduled < count)
		return false;
	s->ended = "count";
	return true;
}

enum sender_step sender_step(struct sender *s)
{
	uint64_t now = clock_cycles();
	struct pace_due due;
	unsigned n;

	sender_lap(s, now, s->moved);
	while (pace_overdue(&s->pace, now))
		if (!give_up(s))
			return SENDER_ENDED;
	if (!pace_due(&s->pace, now, &due))
		return wait_for_burst(s, now);
	if ((int64_t)(due.intended - s->r->start) < 0) /* an unlimited sender before its start time */
		return SENDER_IDLE;
	if (!enter_window(s, due.intended))
		return SENDER_ENDED;
	note_due(s, &due);
	n = s->owed ? s->owed : burst_size(s);
	if (!n) { /* the train has left: silence until the next window */
		if (s->r->o->yield_every)
			sender_yield(s);
		return SENDER_IDLE;
	}
	if (!offer(s, n, due.intended))
		return SENDER_ENDED;
	if (s->owed)
		return SENDER_SENT;
	pace_next(&s->pace);
	return count_reached(s) ? SENDER_ENDED : SENDER_SENT;
}

void sender_cut(struct sender *s)
{
	uint64_t now = clock_cycles();

	/* Stopped during a stall: what was due by now is missing. */
	while (s->insists && !s->ended && sender_behind(s, now))
		if (!give_up(s))
			break;
	if (s->ended && s->cursor.number == s->cursor.last && s->now.scheduled == 0 && now >= s->cursor.end)
		return; /* the last window has been closed */
	close_window(s, now < s->cursor.end ? now : s->cursor.end);
}

/* Retries for as long as a receiver waits for frames. A switch that does not get its CPU leaves its ring
 * full, and a receiver without an end mark has to be stopped. */
static void first_end_mark(struct sender *s)
{
	const struct run *r = s->r;
	uint64_t deadline = clock_cycles() + clock_ns_to_cycles(&r->clock, r->o->drain_s * 1e9);

	while (!run_send_control(s->r, s->next_sequence + 1) && clock_cycles() < deadline)
		if (r->error.call || control_abandon)
			return;
}

void sender_end_mark(struct sender *s)
{
	first_end_mark(s);
	s->marked = true;
}

void sender_repeat_end_mark(struct sender *s)
{
	struct run *r = s->r;
	const bool stopped = control_stopped();

	if (!s->marked)
		return;
	for (unsigned i = 0; i < sizeof(END_MARK_PAUSE_NS) / sizeof(END_MARK_PAUSE_NS[0]); i++) {
		const struct timespec pause = {.tv_nsec = END_MARK_PAUSE_NS[i]};

		nanosleep(&pause, NULL); /* a signal ends it early */
		if (r->error.call || control_abandon || control_stopped() != stopped)
			return;
		if (r->ops->peer_left && r->ops->peer_left(r->io))
			return;
		run_send_control(s->r, s->next_sequence + 1);
	}
}

void sender_summary(struct sender *s, struct json *j)
{
	if (s->lateness_total.count) {
		s->total.lateness_p99_ns = histogram_quantile_any(&s->lateness_total, 0.99);
		s->total.lateness_max_ns = s->lateness_total.max;
	}
	window_tx_json(j, &s->total);
	json_u64(j, "sequences", s->next_sequence);
	json_u64(j, "sent_bytes",
	        pattern_bytes(&s->r->o->io.pattern, s->next_sequence, s->r->o->io.packet_size));
	if (!s->pace.unlimited) {
		histogram_json(j, "lateness_ns", &s->lateness_total);
		histogram_json(j, "spacing_error_ns", &s->spacing);
	}
}
