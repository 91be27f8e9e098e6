/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/sender.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/frame.h"
#include "io/dress.h"
#include "traffic/client.h"

#define LATENESS_DIGITS 2
/* Pauses before the second and the third end mark: long enough for a full queue to empty. */
static const long END_MARK_PAUSE_NS[] = {10000000, 40000000};

bool sender_init(struct sender *s, struct run *r, double backlog_s, sender_window on_window, void *context)
{
	const struct options *o = r->o;
	uint64_t backlog = clock_ns_to_cycles(&r->clock, backlog_s * 1e9);

	*s = (struct sender){.r = r, .full_turn = UINT64_MAX, .on_window = on_window, .context = context};
	pace_init(&s->pace, r->clock.hz, o->rate_pps, o->burst, o->catch_up, backlog);
	/* Not a cycle before the first window, as rounded by window_start(). */
	pace_follow(&s->pace, o->trace, o->trace_seconds,
	        (uint64_t)ceill((long double)o->warmup_s * (long double)r->clock.hz));
	return rtt_init(&s->lateness, LATENESS_DIGITS) && rtt_init(&s->lateness_total, LATENESS_DIGITS) &&
	       rtt_init(&s->spacing, LATENESS_DIGITS);
}

void sender_free(struct sender *s)
{
	rtt_free(&s->lateness);
	rtt_free(&s->lateness_total);
	rtt_free(&s->spacing);
	free(s->sent_at);
	s->sent_at = NULL;
}

bool sender_keep_times(struct sender *s)
{
	s->sent_at = calloc(ACCOUNT_HORIZON, sizeof(*s->sent_at));
	return s->sent_at != NULL;
}

void sender_start(struct sender *s)
{
	const struct options *o = s->r->o;

	pace_start(&s->pace, s->r->start);
	window_start(&s->cursor, s->r->start, s->r->clock.hz, o->warmup_s, o->window_s, o->duration_s);
	s->train_left = sender_train(o, s->cursor.number);
	s->involuntary_before = run_involuntary_switches();
	meter_start(&s->meter, clock_cycles(), clock_ns_to_cycles(&s->r->clock, METER_GAP_NS));
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

/* Ends the current window, which lasts until `end` (cycles), and starts counting anew. */
static void close_window(struct sender *s, uint64_t end)
{
	const struct clock *clock = &s->r->clock;
	uint64_t began = clock_thread_ns(), involuntary = run_involuntary_switches();
	struct window_tx *w = &s->now;

	w->involuntary_switches = involuntary - s->involuntary_before;
	s->involuntary_before = involuntary;
	if (s->lateness.count) {
		w->lateness_p99_ns = rtt_quantile_any(&s->lateness, 0.99);
		w->lateness_max_ns = s->lateness.max;
		rtt_add(&s->lateness_total, &s->lateness);
		rtt_reset(&s->lateness);
	}
	meter_learn(&s->meter, &w->cycles);
	window_tx_add(&s->total, w);
	if (s->cursor.number != FRAME_WINDOW_WARMUP) {
		clock_anchor(&s->r->clock);
		w->start_ns = clock_to_monotonic(clock, s->cursor.start);
		w->duration_ns = clock_cycles_to_ns(clock, end - s->cursor.start);
		s->windows++;
		s->on_window(s->context, s->cursor.number, w);
	}
	*w = (struct window_tx){0};
	/* What others took meanwhile, or a harness that does not read, stays a gap. */
	s->meter.excused += clock_ns_to_cycles(clock, (double)(clock_thread_ns() - began));
}

/* Moves to the window that `at` lies in. False if the run's last window has ended. */
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
	meter_lap(&s->meter, now, frames, &s->now.cycles);
	s->moved = 0;
}

void sender_yield(struct sender *s)
{
	uint64_t before = clock_cycles();

	sched_yield();
	s->meter.given_away += clock_cycles() - before;
	s->now.yields++;
	s->since_yield = 0;
}

static void stamp(struct sender *s, uint8_t *payload[], unsigned n, uint64_t intended)
{
	const struct options *o = s->r->o;
	uint64_t tag = frame_tag(o->stream_id, s->cursor.number), time_be = htobe64(intended);

	if (dress_needed(o))
		dress_frames(o, s->r->ops, s->r->io, payload, n, s->next_sequence);
	for (unsigned i = 0; i < n; i++)
		frame_stamp_tagged(payload[i], tag, s->next_sequence + i, time_be);
	if (o->touch) {
		const uint32_t around = frame_around_bytes(&o->ends.header);

		for (unsigned i = 0; i < n; i++) {
			uint64_t sequence = s->next_sequence + i;
			uint32_t size = shape_size(&o->shape, s->cursor.number, sequence, o->packet_size);

			frame_fill(payload[i], size - around, sequence);
		}
	}
	if (o->denied.percent)
		dress_denied(o, payload, n, s->next_sequence);
	if (s->r->ops->sees_l2 && (o->touch || frame_needs_seal(&o->ends.header)))
		for (unsigned i = 0; i < n; i++)
			dress_seal(o, s->r->ops, payload[i]);
	if (s->sent_at) {
		uint64_t now = clock_cycles();

		for (unsigned i = 0; i < n; i++)
			s->sent_at[(s->next_sequence + i) % ACCOUNT_HORIZON] =
			        sender_sent_at(now, i == 0 && !s->begun);
	}
}

static void note_denied(struct sender *s)
{
	const struct options *o = s->r->o;
	uint64_t before = s->denied.denied;

	if (!o->denied.percent)
		return;
	denied_walk(&s->denied, &o->denied, &o->shape, s->next_sequence);
	s->now.denied += s->denied.denied - before;
}

/* Offers n frames that were due at `intended`. False on an I/O error. */
static bool offer(struct sender *s, unsigned n, uint64_t intended)
{
	struct run *r = s->r;
	uint8_t *payload[IO_BURST_MAX];
	unsigned lent = r->ops->tx_acquire(r->io, payload, n);
	const bool again = s->pace.unlimited || s->insists;
	int taken = 0;

	if (lent) {
		stamp(s, payload, lent, intended);
		taken = r->ops->tx_commit(r->io, lent);
		if (taken < 0) {
			run_failed(r, "send", errno);
			return false;
		}
	}
	/* What is offered again counts when it is taken: of an unlimited sender with a new stamp. */
	s->now.scheduled += again ? (unsigned)taken : n;
	s->now.refused += again ? 0 : n - (unsigned)taken;
	s->now.sent += (unsigned)taken;
	s->next_sequence += (unsigned)taken;
	note_denied(s);
	s->since_yield += (unsigned)taken;
	s->moved = (unsigned)taken;
	s->now.bursts += taken > 0 && !s->begun;
	if (s->insists) {
		s->owed = n - (unsigned)taken;
		s->begun = s->owed && (s->begun || taken > 0);
	}
	if (s->r->o->train_from)
		s->train_left -= (unsigned)taken;
	if ((unsigned)taken < n) {
		s->now.tx_full++;
		if (s->full_turn != s->next_sequence / SENDER_TURN) {
			s->full_turn = s->next_sequence / SENDER_TURN;
			s->now.full_turns++;
		}
		if (r->o->yield_every)
			sender_yield(s);
	} else if (r->o->yield_every > 1 && s->since_yield >= r->o->yield_every) {
		sender_yield(s);
	}
	return true;
}

/* Both bursts were due at absolute times, so what their latenesses differ by is the error of their spacing.
 */
static void note_lateness(struct sender *s, uint64_t ns)
{
	uint64_t before = s->last_lateness_ns;

	rtt_record(&s->lateness, ns, 1);
	if (s->lateness.count + s->lateness_total.count > 1)
		rtt_record(&s->spacing, ns > before ? ns - before : before - ns, 1);
	s->last_lateness_ns = ns;
}

/* Frames this burst may still hold under --count. */
static unsigned burst_size(const struct sender *s)
{
	const struct options *o = s->r->o;
	uint64_t left = o->count ? o->count - (s->total.scheduled + s->now.scheduled) : UINT64_MAX;

	if (o->train_from && left > s->train_left)
		left = s->train_left;
	return left > o->burst ? o->burst : (unsigned)left;
}

/* Gives up what is left of the burst that is due next, in the window it was due in. False if the run's last
 * window has ended. */
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

enum sender_step sender_step(struct sender *s)
{
	uint64_t now = clock_cycles();
	struct pace_due due;
	unsigned n;

	sender_lap(s, now, s->moved);
	while (pace_overdue(&s->pace, now))
		if (!give_up(s))
			return SENDER_ENDED;
	if (!pace_due(&s->pace, now, &due)) {
		/* A window ends on time even if its successor's first burst is far off. */
		if (now >= s->cursor.end && s->pace.next >= s->cursor.end && !enter_window(s, now))
			return SENDER_ENDED;
		if (s->r->ops->tx_flush)
			s->r->ops->tx_flush(s->r->io);
		if (s->r->o->yield_every)
			sender_yield(s);
		return SENDER_IDLE;
	}
	if ((int64_t)(due.intended - s->r->start) < 0) /* an unlimited sender before its start time */
		return SENDER_IDLE;
	if (!enter_window(s, due.intended))
		return SENDER_ENDED;
	if (!s->pace.unlimited && !s->owed) {
		note_lateness(s, clock_cycles_to_ns(&s->r->clock, due.lateness));
		if (due.due_frames > s->pace.burst && due.due_frames > s->now.catch_up_max)
			s->now.catch_up_max = due.due_frames;
	}
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
	if (s->r->o->count && s->total.scheduled + s->now.scheduled >= s->r->o->count) {
		s->ended = "count";
		return SENDER_ENDED;
	}
	return SENDER_SENT;
}

void sender_cut(struct sender *s)
{
	uint64_t now = clock_cycles();

	/* Told to stop in the middle of a stall: what was due by now is missing. */
	while (s->insists && !s->ended && sender_behind(s, now))
		if (!give_up(s))
			break;
	if (s->ended && s->cursor.number == s->cursor.last && s->now.scheduled == 0 && now >= s->cursor.end)
		return; /* the last window has been closed */
	close_window(s, now < s->cursor.end ? now : s->cursor.end);
}

/* Tries for as long as a receiver would wait for frames: a switch that is kept off its CPU leaves its ring
 * full, and a receiver that gets no mark has to be told to stop. */
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
		s->total.lateness_p99_ns = rtt_quantile_any(&s->lateness_total, 0.99);
		s->total.lateness_max_ns = s->lateness_total.max;
	}
	window_tx_json(j, &s->total);
	json_u64(j, "sequences", s->next_sequence);
	json_u64(j, "sent_bytes", shape_bytes(&s->r->o->shape, s->next_sequence, s->r->o->packet_size));
	if (!s->pace.unlimited) {
		client_histogram_json(j, "lateness_ns", &s->lateness_total);
		client_histogram_json(j, "spacing_error_ns", &s->spacing);
	}
}
