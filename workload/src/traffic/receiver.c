/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "base/frame.h"

bool receiver_init(struct receiver *rx, struct run *r, receiver_window on_window, void *context)
{
	*rx = (struct receiver){.r = r, .on_window = on_window, .context = context};
	rx->stream = frame_tag(io_counted_stream(&r->o->io), 0);
	rx->overhead = frame_overhead_bytes(&r->o->io.ends.header);
	rx->match = frame_match(&r->o->io.ends.header, r->o->io.ends.udp_port);
	rx->tracker = tracker_new();
	rx->windows = calloc(WINDOW_COUNT, sizeof(*rx->windows));
	rx->involuntary_before = run_involuntary_switches();
	rx->cpu_ns_before = run_cpu_ns();
	if (!rx->tracker || !rx->windows)
		return false;
	if (!pattern_flows_recur(&r->o->io.pattern))
		return true;
	tracker_watch(rx->tracker, flows_note_lost, &rx->flows);
	return flows_init(&rx->flows, &r->o->io.pattern, &r->o->io.peer_acl);
}

void receiver_free(struct receiver *rx)
{
	tracker_free(rx->tracker);
	flows_free(&rx->flows);
	free(rx->windows);
	rx->tracker = NULL;
	rx->windows = NULL;
}

static void note_use(struct receiver *rx)
{
	uint64_t involuntary = run_involuntary_switches(), cpu_ns = run_cpu_ns();

	rx->windows[rx->current].cpu_ns += cpu_ns - rx->cpu_ns_before;
	rx->cpu_ns_before = cpu_ns;
	rx->windows[rx->current].involuntary_switches += involuntary - rx->involuntary_before;
	rx->involuntary_before = involuntary;
}

/* Ends the current window: frames of a later one have begun to arrive. */
static void advance_window(struct receiver *rx, uint16_t number)
{
	uint64_t began = clock_thread_ns();
	uint16_t before = rx->current;

	note_use(rx);
	if (rx->meter)
		loop_meter_learn(rx->meter, &rx->windows[before].cycles);
	rx->current = rx->highest = number;
	if (before != FRAME_WINDOW_WARMUP && rx->on_window)
		rx->on_window(rx->context, before, &rx->windows[before]);
	if (rx->meter)
		rx->meter->excused += clock_ns_to_cycles(&rx->r->clock, (double)(clock_thread_ns() - began));
}

/* Consecutive frames of one window, counted at once. */
struct run_length {
	uint64_t tag, first, bytes;
	unsigned n, at; /* `at`: index of the first within the burst */
};

/* With several flows, a frame is reordered only if a later frame of its flow has overtaken it. Flows of one
 * frame are never reordered. */
static bool is_reordered(struct receiver *rx, enum tracker_verdict v, uint64_t sequence)
{
	if (rx->flows.pattern && v == TRACKER_NEW)
		flows_take_run(&rx->flows, sequence, 1);
	if (v != TRACKER_REORDERED || rx->r->o->io.pattern.field == PATTERN_NEW)
		return false;
	return !rx->flows.pattern || flows_take_late(&rx->flows, sequence);
}

static void count_one(struct receiver *rx, struct window_rx *w, uint64_t sequence, uint8_t *verdict)
{
	enum tracker_verdict v = tracker_one(rx->tracker, sequence);

	rx->received += v == TRACKER_NEW || v == TRACKER_REORDERED;
	w->received += v == TRACKER_NEW || v == TRACKER_REORDERED;
	w->reordered += is_reordered(rx, v, sequence);
	w->duplicated += v == TRACKER_DUPLICATE;
	rx->late += v == TRACKER_LATE;
	if (verdict)
		*verdict = v == TRACKER_NEW || v == TRACKER_REORDERED ? RECEIVER_FIRST : RECEIVER_AGAIN;
}

static void count_stretch(struct receiver *rx, const struct run_length *s, uint64_t now, uint8_t *verdicts)
{
	uint16_t number = (uint16_t)(s->tag >> 32);
	struct window_rx *w = &rx->windows[number];

	if (number > rx->highest)
		advance_window(rx, number);
	w->bytes += s->bytes;
	w->last = now;
	if (!w->first)
		w->first = now;
	if (tracker_run(rx->tracker, s->first, s->n)) {
		if (rx->flows.pattern)
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

/* Checks every byte and every checksum, with --check-payload. */
static bool is_intact(const struct receiver *rx, const struct io_frame *f, uint64_t tag, uint64_t sequence)
{
	const struct options *o = rx->r->o;

	if (f->payload_len + rx->overhead !=
	        pattern_size(&o->io.pattern, (uint16_t)(tag >> 32), sequence, o->io.packet_size))
		return false;
	return frame_padding_ok(f->payload, f->payload_len, sequence) &&
	       (!f->l2 || frame_checksums_ok(f->l2, &o->io.ends.header));
}

/* Returns how many of the first `end` frames an ACL drops. */
static uint64_t acl_drop_before(const struct receiver *rx, uint64_t end)
{
	const struct options *o = rx->r->o;
	struct acl_walk walk = rx->dropped;

	if (!o->io.peer_acl.percent)
		return 0;
	acl_walk(&walk, &o->io.peer_acl, &o->io.pattern, end);
	return walk.acl_drops;
}

/* Whether the frame is longer than any that was sent: the path has merged several datagrams (GRO) and not
 * split them again. The buffer may hold only the beginning. */
static bool is_joined(const struct receiver *rx, const struct io_frame *f)
{
	const uint8_t *payload = f->payload;
	uint16_t length = f->payload_len;
	uint64_t head;

	if (f->l2 && f->l2_len < rx->match.header_bytes + FRAME_STAMP_BYTES)
		return false;
	if (f->l2)
		payload = frame_parse(f->l2, UINT32_MAX, &rx->match, &length);
	if (!payload || length + rx->overhead <= rx->r->o->io.packet_size)
		return false;
	memcpy(&head, payload, sizeof(head));
	return (be64toh(head) ^ rx->stream) >> 48 == 0;
}

static void take_control(struct receiver *rx, uint64_t sequence)
{
	if (!sequence)
		return;
	rx->end_mark = sequence;
	rx->acl_drop_due = acl_drop_before(rx, sequence - 1);
}

/* The expected properties of a burst, read once. */
struct expectation {
	uint64_t stream;
	uint32_t longest; /* packet size */
	bool check_payload;
	const struct acl *acl; /* NULL: no frame should have been dropped */
};

struct stamp {
	uint64_t tag, sequence;
};

static inline struct stamp read_stamp(const uint8_t *payload)
{
	uint64_t head;
	uint16_t low;

	memcpy(&head, payload, sizeof(head));
	memcpy(&low, payload + 8, sizeof(low));
	head = be64toh(head);
	return (struct stamp){head & ~(uint64_t)UINT32_MAX, (head & UINT32_MAX) << 16 | be16toh(low)};
}

static inline bool same_stream(uint64_t a, uint64_t b)
{
	return (a ^ b) >> 48 == 0;
}

static inline bool is_control(uint64_t tag)
{
	return (uint16_t)(tag >> 32) == FRAME_WINDOW_CONTROL;
}

/* Reads the stamp of a frame that is whole, should have arrived and is undamaged. Counts any other frame and
 * returns false. */
static inline bool accept_frame(struct receiver *rx, const struct io_frame *f,
        const struct expectation *expected, struct stamp *stamp)
{
	if (__builtin_expect(f->frame_len > expected->longest, 0) && is_joined(rx, f)) {
		rx->joined++;
		rx->corrupted++;
		return false;
	}
	if (__builtin_expect(!f->payload || f->payload_len < FRAME_STAMP_BYTES, 0)) {
		rx->foreign++;
		return false;
	}
	*stamp = read_stamp(f->payload);
	if (expected->acl && same_stream(stamp->tag, expected->stream) && !is_control(stamp->tag) &&
	        acl_denies_frame(expected->acl, &rx->r->o->io.pattern, stamp->sequence)) {
		rx->acl_drops_passed++;
		return false;
	}
	if (expected->check_payload && !is_intact(rx, f, stamp->tag, stamp->sequence) &&
	        same_stream(stamp->tag, expected->stream)) {
		rx->corrupted++;
		return false;
	}
	return true;
}

/* Whether a stamp is of a measuring frame of the stream. Takes a control frame in, and counts any other. */
static inline bool is_measuring(struct receiver *rx, struct stamp stamp)
{
	const bool ours = same_stream(stamp.tag, rx->stream);

	if (is_control(stamp.tag) && frame_same_pair(stamp.tag, rx->stream)) {
		if (ours) /* an end mark left on the path by an earlier launch ends nothing */
			take_control(rx, stamp.sequence);
		return false;
	}
	rx->foreign += !ours;
	return ours;
}

void receiver_take(
        struct receiver *rx, const struct io_frame *frames, unsigned n, uint64_t now, uint8_t *verdicts)
{
	const struct io_config *c = &rx->r->o->io;
	const struct expectation expected = {
	        rx->stream, c->packet_size, c->check_payload, c->peer_acl.percent ? &c->peer_acl : NULL};
	struct run_length s = {0};

	if (!rx->deadline) {
		rx->windows[rx->current].polls++;
		rx->windows[rx->current].empty_polls += n == 0;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct io_frame *f = &frames[i];
		struct stamp stamp = {0};
		bool accepted = accept_frame(rx, f, &expected, &stamp);

		if (accepted && stamp.tag == s.tag && stamp.sequence == s.first + s.n && s.n &&
		        i == s.at + s.n) {
			s.n++;
			s.bytes += f->frame_len;
			continue;
		}
		if (!accepted || !is_measuring(rx, stamp)) {
			if (verdicts)
				verdicts[i] = RECEIVER_NOT_OURS;
			continue;
		}
		if (s.n)
			count_stretch(rx, &s, now, verdicts);
		s = (struct run_length){
		        .tag = stamp.tag, .first = stamp.sequence, .bytes = f->frame_len, .n = 1, .at = i};
	}
	if (s.n)
		count_stretch(rx, &s, now, verdicts);
	if (expected.acl)
		acl_walk(&rx->dropped, expected.acl, &c->pattern, tracker_next(rx->tracker));
}

void receiver_begin_drain(struct receiver *rx, uint64_t now, const char *reason)
{
	const struct run *r = rx->r;

	if (rx->deadline)
		return;
	note_use(rx);
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
		if (rx->received + rx->acl_drop_due >= rx->end_mark - 1)
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
	json_i64(j, "highest_sequence", (int64_t)tracker_next(rx->tracker) - 1);
	json_u64(j, "gaps", tracker_gaps(rx->tracker) - rx->dropped.acl_drops);
	if (rx->flows.pattern) {
		tracker_finish(rx->tracker, rx->end_mark ? rx->end_mark - 1 : 0);
		flows_json(&rx->flows, j);
	}
	json_u64(j, "late", rx->late);
	json_u64(j, "foreign", rx->foreign);
	json_u64(j, "corrupted", rx->corrupted);
	json_u64(j, "peer_acl_drops", rx->dropped.acl_drops);
	json_u64(j, "acl_drops_passed", rx->acl_drops_passed);
	json_u64(j, "joined", rx->joined);
}
