/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "base/frame.h"

bool receiver_init(struct receiver *rx, struct run *r, receiver_window on_window, void *context)
{
	*rx = (struct receiver){.r = r, .on_window = on_window, .context = context};
	rx->stream = frame_tag(options_counted_stream(r->o), 0);
	rx->around = frame_around_bytes(&r->o->ends.header);
	rx->match = frame_match(&r->o->ends.header, r->o->ends.udp_port);
	rx->account = account_new();
	rx->windows = calloc(WINDOW_COUNT, sizeof(*rx->windows));
	rx->involuntary_before = run_involuntary_switches();
	if (!rx->account || !rx->windows)
		return false;
	if (!shape_flows_recur(&r->o->shape))
		return true;
	account_watch(rx->account, flows_note_lost, &rx->flows);
	return flows_init(&rx->flows, &r->o->shape, &r->o->peer_denied);
}

void receiver_free(struct receiver *rx)
{
	account_free(rx->account);
	flows_free(&rx->flows);
	free(rx->windows);
	rx->account = NULL;
	rx->windows = NULL;
}

static void note_switches(struct receiver *rx)
{
	uint64_t involuntary = run_involuntary_switches();

	rx->windows[rx->current].involuntary_switches += involuntary - rx->involuntary_before;
	rx->involuntary_before = involuntary;
}

/* Frames of a later window have begun to arrive. */
static void advance_window(struct receiver *rx, uint16_t number)
{
	uint64_t began = clock_thread_ns();
	uint16_t before = rx->current;

	note_switches(rx);
	if (rx->meter)
		meter_learn(rx->meter, &rx->windows[before].cycles);
	rx->current = rx->highest = number;
	if (before != FRAME_WINDOW_WARMUP && rx->on_window)
		rx->on_window(rx->context, before, &rx->windows[before]);
	if (rx->meter)
		rx->meter->excused += clock_ns_to_cycles(&rx->r->clock, (double)(clock_thread_ns() - began));
}

/* A stretch of frames of one window with ascending sequence numbers, accounted at once. */
struct run_length {
	uint64_t tag, first, bytes;
	unsigned n, at; /* `at`: index of the first within the burst */
};

/* Of several flows those frames are reordered alone that others of their flow have overtaken. A flow of one
 * frame has no others. */
static bool is_reordered(struct receiver *rx, enum account_verdict v, uint64_t sequence)
{
	if (rx->flows.shape && v == ACCOUNT_NEW)
		flows_take_run(&rx->flows, sequence, 1);
	if (v != ACCOUNT_REORDERED || rx->r->o->shape.field == SHAPE_NEW)
		return false;
	return !rx->flows.shape || flows_take_late(&rx->flows, sequence);
}

static void count_one(struct receiver *rx, struct window_rx *w, uint64_t sequence, uint8_t *verdict)
{
	enum account_verdict v = account_one(rx->account, sequence);

	rx->received += v == ACCOUNT_NEW || v == ACCOUNT_REORDERED;
	w->received += v == ACCOUNT_NEW || v == ACCOUNT_REORDERED;
	w->reordered += is_reordered(rx, v, sequence);
	w->duplicated += v == ACCOUNT_DUPLICATE;
	rx->late += v == ACCOUNT_LATE;
	if (verdict)
		*verdict = v == ACCOUNT_NEW || v == ACCOUNT_REORDERED ? RECEIVER_FIRST : RECEIVER_AGAIN;
}

static void account_stretch(struct receiver *rx, const struct run_length *s, uint64_t now, uint8_t *verdicts)
{
	uint16_t number = (uint16_t)(s->tag >> 32);
	struct window_rx *w = &rx->windows[number];

	if (number > rx->highest)
		advance_window(rx, number);
	w->bytes += s->bytes;
	w->last = now;
	if (!w->first)
		w->first = now;
	if (account_run(rx->account, s->first, s->n)) {
		if (rx->flows.shape)
			flows_take_run(&rx->flows, s->first, s->n);
		rx->received += s->n;
		w->received += s->n;
		if (verdicts)
			memset(verdicts + s->at, RECEIVER_FIRST, s->n);
		return;
	}
	for (unsigned i = 0; i < s->n; i++)
		count_one(rx, w, s->first + i, verdicts ? &verdicts[s->at + i] : NULL);
}

/* With --touch: every byte and every checksum. */
static bool intact(const struct receiver *rx, const struct io_frame *f, uint64_t tag, uint64_t sequence)
{
	const struct options *o = rx->r->o;

	if (f->payload_len + rx->around !=
	        shape_size(&o->shape, (uint16_t)(tag >> 32), sequence, o->packet_size))
		return false;
	return frame_filled(f->payload, f->payload_len, sequence) &&
	       (!f->l2 || frame_checksums_ok(f->l2, &o->ends.header));
}

/* Frames of denied flows among the first `end`. */
static uint64_t denied_before(const struct receiver *rx, uint64_t end)
{
	const struct options *o = rx->r->o;
	struct denied_walk walk = rx->denied;

	if (!o->peer_denied.percent)
		return 0;
	denied_walk(&walk, &o->peer_denied, &o->shape, end);
	return walk.denied;
}

/* Whether it is longer than all that was sent: several datagrams that the path has put together (GRO) and not
 * parted again. Our buffer may hold its beginning alone. */
static bool is_joined(const struct receiver *rx, const struct io_frame *f)
{
	const uint8_t *payload = f->payload;
	uint16_t length = f->payload_len;
	uint64_t head;

	if (f->l2 && f->l2_len < rx->match.header_bytes + FRAME_STAMP_BYTES)
		return false;
	if (f->l2)
		payload = frame_parse(f->l2, UINT32_MAX, &rx->match, &length);
	if (!payload || length + rx->around <= rx->r->o->packet_size)
		return false;
	memcpy(&head, payload, sizeof(head));
	return (be64toh(head) ^ rx->stream) >> 48 == 0;
}

static void take_control(struct receiver *rx, uint64_t sequence)
{
	if (!sequence)
		return;
	rx->end_mark = sequence;
	rx->denied_due = denied_before(rx, sequence - 1);
}

void receiver_take(
        struct receiver *rx, const struct io_frame *frames, unsigned n, uint64_t now, uint8_t *verdicts)
{
	const uint64_t stream = rx->stream;
	const bool touch = rx->r->o->touch;
	const struct denied *denied = rx->r->o->peer_denied.percent ? &rx->r->o->peer_denied : NULL;
	const uint32_t longest = rx->r->o->packet_size;
	struct run_length s = {0};

	if (!rx->deadline) {
		rx->windows[rx->current].polls++;
		rx->windows[rx->current].empty_polls += n == 0;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct io_frame *f = &frames[i];
		uint64_t head, sequence, tag;
		uint16_t low;

		if (__builtin_expect(f->frame_len > longest, 0) && is_joined(rx, f)) {
			rx->joined++;
			rx->corrupted++;
			goto not_ours;
		}
		if (__builtin_expect(!f->payload || f->payload_len < FRAME_STAMP_BYTES, 0))
			goto foreign;
		memcpy(&head, f->payload, sizeof(head));
		memcpy(&low, f->payload + 8, sizeof(low));
		head = be64toh(head);
		sequence = (head & UINT32_MAX) << 16 | be16toh(low);
		tag = head & ~(uint64_t)UINT32_MAX;
		if (denied && (tag ^ stream) >> 48 == 0 && (uint16_t)(tag >> 32) != FRAME_WINDOW_CONTROL &&
		        denied_frame(denied, &rx->r->o->shape, sequence)) {
			rx->denied_passed++;
			goto not_ours;
		}
		if (touch && !intact(rx, f, tag, sequence) && (tag ^ stream) >> 48 == 0) {
			rx->corrupted++;
			goto not_ours;
		}
		if (tag == s.tag && sequence == s.first + s.n && s.n && i == s.at + s.n) {
			s.n++;
			s.bytes += f->frame_len;
			continue;
		}
		if ((uint16_t)(tag >> 32) == FRAME_WINDOW_CONTROL && frame_same_pair(tag, stream)) {
			/* An end mark that an earlier launch left on the way ends nothing here. */
			if ((tag ^ stream) >> 48 == 0)
				take_control(rx, sequence);
			goto not_ours;
		}
		if ((tag ^ stream) >> 48)
			goto foreign;
		if (s.n)
			account_stretch(rx, &s, now, verdicts);
		s = (struct run_length){
		        .tag = tag, .first = sequence, .bytes = f->frame_len, .n = 1, .at = i};
		continue;
	foreign:
		rx->foreign++;
	not_ours:
		if (verdicts)
			verdicts[i] = RECEIVER_NOT_OURS;
	}
	if (s.n)
		account_stretch(rx, &s, now, verdicts);
	if (denied)
		denied_walk(&rx->denied, denied, &rx->r->o->shape, account_next(rx->account));
}

void receiver_begin_drain(struct receiver *rx, uint64_t now, const char *reason)
{
	const struct run *r = rx->r;

	if (rx->deadline)
		return;
	note_switches(rx);
	rx->ended = reason;
	rx->deadline = now + clock_ns_to_cycles(&r->clock, r->o->drain_s * 1e9);
}

bool receiver_done(struct receiver *rx, uint64_t now)
{
	if (__builtin_expect(control_stopped(), 0)) {
		if (control_abandon)
			return true;
		receiver_begin_drain(rx, now, NULL);
	}
	if (__builtin_expect(rx->end_mark != 0, 0)) {
		receiver_begin_drain(rx, now, "end");
		if (rx->received + rx->denied_due >= rx->end_mark - 1)
			return true;
	}
	return rx->deadline && now >= rx->deadline;
}

void receiver_window_json(const struct receiver *rx, struct json *j, const struct window_rx *w)
{
	window_rx_json(j, w);
	if (w->first) {
		json_u64(j, "first_ns", clock_to_monotonic(&rx->r->clock, w->first));
		json_u64(j, "last_ns", clock_to_monotonic(&rx->r->clock, w->last));
	} else {
		json_null(j, "first_ns");
		json_null(j, "last_ns");
	}
}

void receiver_summary(struct receiver *rx, struct json *j)
{
	struct window_rx total = {0};

	for (unsigned i = 0; i <= rx->highest; i++)
		window_rx_add(&total, &rx->windows[i]);
	window_rx_json(j, &total);
	json_i64(j, "highest_sequence", (int64_t)account_next(rx->account) - 1);
	json_u64(j, "gaps", account_gaps(rx->account) - rx->denied.denied);
	if (rx->flows.shape) {
		account_finish(rx->account, rx->end_mark ? rx->end_mark - 1 : 0);
		flows_json(&rx->flows, j);
	}
	json_u64(j, "late", rx->late);
	json_u64(j, "foreign", rx->foreign);
	json_u64(j, "corrupted", rx->corrupted);
	json_u64(j, "peer_denied", rx->denied.denied);
	json_u64(j, "denied_passed", rx->denied_passed);
	json_u64(j, "joined", rx->joined);
}
