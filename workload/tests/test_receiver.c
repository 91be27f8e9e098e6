/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive path: bursts with injected loss, duplication, reordering, damage and foreign frames, against a
 * model that handles one frame at a time.
 */
#include "traffic/receiver.h"

#include <stdatomic.h>

#include "base/frame.h"
#include "check.h"

#define FRAMES 400000u
#define WINDOWS 40u
#define SLOT 256u

static const struct options OPTIONS = {.app_name = "recv",
        .io.packet_size = 128,
        .io.burst = 64,
        .io.check_payload = true,
        .io.stream_id = 7,
        .drain_s = 1};

struct model {
	uint8_t seen[FRAMES];
	uint64_t next, received, foreign, corrupted;
	struct window_rx windows[WINDOWS + 1];
};

/* Kinds of injected frames. */
enum sort { OURS, STRANGE_STREAM, NOT_UDP, SHORT, DAMAGED, CONTROL };

static struct run run_for(const struct options *o)
{
	struct run r = {.o = o, .clock = {.hz = 2000000000, .ns_per_cycle = 0.5}};

	return r;
}

static uint16_t window_of(uint64_t sequence)
{
	return (uint16_t)(sequence * (WINDOWS + 1) / FRAMES);
}

static void put_frame(struct io_frame *f, uint8_t *buffer, enum sort sort, uint64_t sequence)
{
	const struct frame_match match = frame_match(&OPTIONS.io.ends.header, OPTIONS.io.ends.udp_port);
	uint32_t length = frame_payload_bytes(&OPTIONS.io.ends.header, OPTIONS.io.packet_size);
	struct frame_label label = {OPTIONS.io.stream_id, window_of(sequence), sequence};

	if (sort == STRANGE_STREAM)
		label.stream++;
	if (sort == CONTROL)
		label = (struct frame_label){OPTIONS.io.stream_id, FRAME_WINDOW_CONTROL, 0};
	frame_write_headers(buffer, &OPTIONS.io.ends, OPTIONS.io.packet_size);
	frame_stamp(buffer + FRAME_HEADER_BYTES, label, 1);
	frame_fill_padding(buffer + FRAME_HEADER_BYTES, length, label.sequence);
	frame_write_checksum(buffer, &OPTIONS.io.ends.header, false);
	*f = (struct io_frame){.l2 = buffer, .frame_len = (uint16_t)OPTIONS.io.packet_size};
	f->payload = frame_parse(buffer, OPTIONS.io.packet_size - FRAME_FCS_BYTES, &match, &f->payload_len);
	CHECK(f->payload == buffer + FRAME_HEADER_BYTES);
	CHECK_EQUAL(f->payload_len, length);
	if (sort == DAMAGED)
		f->payload[FRAME_STAMP_BYTES + sequence % (length - FRAME_STAMP_BYTES)] ^=
		        (uint8_t)(1 + sequence % 255);
	if (sort == NOT_UDP)
		f->payload = NULL;
	if (sort == SHORT)
		f->payload_len = FRAME_STAMP_BYTES - 1;
}

static uint8_t model_take(struct model *m, enum sort sort, uint64_t sequence)
{
	struct window_rx *w = &m->windows[window_of(sequence)];

	m->foreign += sort == STRANGE_STREAM || sort == NOT_UDP || sort == SHORT;
	m->corrupted += sort == DAMAGED;
	if (sort != OURS)
		return RECEIVER_NOT_OURS;
	w->bytes += OPTIONS.io.packet_size;
	if (m->seen[sequence]) {
		w->duplicated++;
		return RECEIVER_AGAIN;
	}
	w->reordered += sequence < m->next;
	m->next = sequence >= m->next ? sequence + 1 : m->next;
	m->seen[sequence] = 1;
	m->received++;
	w->received++;
	return RECEIVER_FIRST;
}

static void compare(const struct receiver *rx, const struct model *m)
{
	uint64_t polls = 0;

	CHECK_EQUAL(rx->received, m->received);
	CHECK_EQUAL(rx->foreign, m->foreign);
	CHECK_EQUAL(rx->corrupted, m->corrupted);
	CHECK_EQUAL(rx->late, 0);
	CHECK_EQUAL(tracker_next(rx->tracker), m->next);
	CHECK_EQUAL(tracker_gaps(rx->tracker), m->next - m->received);
	for (unsigned i = 0; i <= WINDOWS; i++) {
		CHECK_EQUAL(rx->windows[i].received, m->windows[i].received);
		CHECK_EQUAL(rx->windows[i].bytes, m->windows[i].bytes);
		CHECK_EQUAL(rx->windows[i].duplicated, m->windows[i].duplicated);
		CHECK_EQUAL(rx->windows[i].reordered, m->windows[i].reordered);
		polls += rx->windows[i].polls;
	}
	CHECK(polls > 0);
}

/* permille: probability of a fault, in thousandths. */
static void random_traffic(uint64_t seed, unsigned permille)
{
	struct model *m = calloc(1, sizeof(*m));
	struct run r = run_for(&OPTIONS);
	struct receiver rx;
	struct io_frame frames[IO_BURST_MAX];
	uint8_t *buffers = calloc(IO_BURST_MAX, SLOT), verdicts[IO_BURST_MAX], expected[IO_BURST_MAX];
	uint64_t random = seed, sequence = 0;

	CHECK(m && buffers && receiver_init(&rx, &r, NULL, NULL));
	while (sequence < FRAMES) {
		unsigned n = (unsigned)(check_random(&random) % (OPTIONS.io.burst + 1));

		for (unsigned i = 0; i < n; i++) {
			uint64_t pick = check_random(&random),
			         number = sequence < FRAMES ? sequence : FRAMES - 1;
			enum sort sort = OURS;

			if (pick % 1000 < permille) {
				switch (pick >> 32 & 7) {
				case 0: /* loss */
					number += number + 1 < FRAMES;
					sequence = number + 1;
					break;
				case 1: /* a duplicate, or a frame that was lost before */
					number = number > 300 ? number - pick % 300 : 0;
					break;
				default:
					sort = (enum sort)(1 + pick % 5);
				}
			} else {
				sequence = number + 1;
			}
			put_frame(&frames[i], buffers + i * SLOT, sort, number);
			expected[i] = model_take(m, sort, number);
		}
		receiver_take(&rx, frames, n, 1000, verdicts);
		CHECK(memcmp(verdicts, expected, n) == 0);
	}
	compare(&rx, m);
	receiver_free(&rx);
	free(buffers);
	free(m);
}

/* A window is reported when frames of the next one arrive; polls count until draining begins. */
static unsigned reported[WINDOWS + 1];

static void on_window(void *context, uint16_t number, const struct window_rx *w)
{
	CHECK(context == reported && w->received > 0);
	reported[number]++;
}

static void windows_and_end(void)
{
	struct run r = run_for(&OPTIONS);
	struct receiver rx;
	struct io_frame f;
	uint8_t buffer[SLOT];
	const uint64_t second = r.clock.hz;

	CHECK(receiver_init(&rx, &r, on_window, reported));
	receiver_take(&rx, NULL, 0, 5, NULL);
	for (uint64_t s = 0; s < FRAMES; s += FRAMES / 400) {
		put_frame(&f, buffer, OURS, s);
		receiver_take(&rx, &f, 1, 10 + s, NULL);
	}
	CHECK_EQUAL(reported[0], 0); /* the warm-up is not reported */
	for (unsigned i = 1; i < WINDOWS; i++)
		CHECK_EQUAL(reported[i], 1);
	CHECK_EQUAL(reported[WINDOWS], 0);
	CHECK_EQUAL(rx.windows[0].empty_polls, 1);
	CHECK(rx.windows[1].first < rx.windows[1].last && rx.windows[1].last < rx.windows[2].first);
	CHECK(!receiver_done(&rx, 1000));

	/* The end mark: frames are missing, so it drains to the end. */
	rx.end_mark = FRAMES + 1;
	CHECK(!receiver_done(&rx, 1000));
	CHECK(strcmp(rx.ended, "end") == 0);
	CHECK(!receiver_done(&rx, 1000 + second - 1));
	CHECK(receiver_done(&rx, 1000 + second));
	/* If everything has arrived, it does not wait. */
	rx.end_mark = rx.received + 1;
	CHECK(receiver_done(&rx, 1001));
	receiver_take(&rx, NULL, 0, 1002, NULL);
	CHECK_EQUAL(rx.windows[WINDOWS].empty_polls, 0);
	receiver_free(&rx);
}

static void take_label(struct receiver *rx, struct frame_label label)
{
	struct io_frame f;
	uint8_t buffer[SLOT];

	put_frame(&f, buffer, OURS, label.sequence);
	frame_stamp(f.payload, label, 1);
	frame_write_checksum(buffer, &OPTIONS.io.ends.header, false);
	receiver_take(rx, &f, 1, 10, NULL);
}

/* Frames left on the path by an earlier launch of the pair end nothing and do not count as received. */
static void earlier_launch(void)
{
	const uint16_t earlier = OPTIONS.io.stream_id + 256;
	struct run r = run_for(&OPTIONS);
	struct receiver rx;

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	take_label(&rx, (struct frame_label){earlier, FRAME_WINDOW_CONTROL, 5});
	CHECK_EQUAL(rx.end_mark, 0);
	CHECK_EQUAL(rx.foreign, 0);
	take_label(&rx, (struct frame_label){earlier, 1, 4});
	CHECK_EQUAL(rx.received, 0);
	CHECK_EQUAL(rx.foreign, 1);
	take_label(&rx, (struct frame_label){OPTIONS.io.stream_id + 1, FRAME_WINDOW_CONTROL, 5});
	CHECK_EQUAL(rx.foreign, 2);
	take_label(&rx, (struct frame_label){OPTIONS.io.stream_id, FRAME_WINDOW_CONTROL, 5});
	CHECK_EQUAL(rx.end_mark, 5);
	CHECK_EQUAL(rx.foreign, 2);
	receiver_free(&rx);
}

/* Frames of a mix are intact with the size of their number, and control frames with the longest of them. */
static void sizes_of_a_mix(void)
{
	struct options o = OPTIONS;
	struct run r = run_for(&o);
	struct receiver rx;

	o.io.pattern = (struct flow_pattern){.cycle = 3, .sizes = {64, 128, 96}};
	CHECK(receiver_init(&rx, &r, NULL, NULL));
	for (uint64_t s = 0; s < 9; s++) /* of 128 bytes each */
		take_label(&rx, (struct frame_label){OPTIONS.io.stream_id, 1, s});
	CHECK_EQUAL(rx.received, 3);
	CHECK_EQUAL(rx.corrupted, 6);
	take_label(&rx, (struct frame_label){OPTIONS.io.stream_id, FRAME_WINDOW_CONTROL, 10});
	CHECK_EQUAL(rx.end_mark, 10);
	CHECK_EQUAL(rx.corrupted, 6);
	receiver_free(&rx);
}

/* Makes a train of our datagrams that GRO has merged: its lengths and one stamp agree. */
static void put_joined(
        struct io_frame *f, uint8_t *buffer, const struct options *o, uint32_t size, uint32_t there)
{
	const struct frame_match match = frame_match(&o->io.ends.header, o->io.ends.udp_port);

	frame_write_headers(buffer, &o->io.ends, size);
	frame_stamp(buffer + match.header_bytes, (struct frame_label){o->io.stream_id, 1, 3}, 1);
	*f = (struct io_frame){.l2 = buffer, .frame_len = (uint16_t)size, .l2_len = (uint16_t)there};
	if (there == size - FRAME_FCS_BYTES)
		f->payload = frame_parse(buffer, there, &match, &f->payload_len);
}

static void take_joined(const struct options *o)
{
	struct run r = run_for(o);
	struct receiver rx;
	struct io_frame f;
	uint8_t buffer[4096] = {0}, verdict;
	const uint32_t whole = 3 * o->io.packet_size;

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	put_joined(&f, buffer, o, whole, whole - FRAME_FCS_BYTES);
	CHECK(f.payload);
	receiver_take(&rx, &f, 1, 10, &verdict);
	CHECK_EQUAL(rx.joined, 1);
	/* The port has only the beginning of this one. */
	put_joined(&f, buffer, o, 60000, 2048);
	receiver_take(&rx, &f, 1, 10, &verdict);
	CHECK_EQUAL(rx.joined, 2);
	CHECK_EQUAL(rx.corrupted, 2);
	CHECK_EQUAL(verdict, RECEIVER_NOT_OURS);
	/* Without a whole stamp its stream is unknown. */
	f.l2_len = (uint16_t)(rx.match.header_bytes + FRAME_STAMP_BYTES - 1);
	receiver_take(&rx, &f, 1, 10, &verdict);
	/* A long frame to another port or of another stream is foreign. */
	put_joined(&f, buffer, o, 60000, 2048);
	buffer[rx.match.header_bytes] ^= 1;
	receiver_take(&rx, &f, 1, 10, &verdict);
	put_joined(&f, buffer, o, 60000, 2048);
	buffer[frame_l4_offset(&o->io.ends.header) + 3] ^= 1;
	receiver_take(&rx, &f, 1, 10, &verdict);
	CHECK_EQUAL(rx.foreign, 3);
	/* Bytes after a datagram of the right length are padding. */
	put_joined(&f, buffer, o, o->io.packet_size, o->io.packet_size - FRAME_FCS_BYTES);
	f.frame_len += 6;
	f.l2_len += 6;
	receiver_take(&rx, &f, 1, 10, &verdict);
	CHECK_EQUAL(rx.received, 1);
	CHECK_EQUAL(rx.joined, 2);
	CHECK_EQUAL(rx.foreign, 3);
	receiver_free(&rx);
}

static void joined_datagrams(void)
{
	struct options o = OPTIONS;

	o.io.check_payload = false;
	o.io.ends.udp_port = 7001; /* 0 is any */
	for (unsigned kind = 0; kind < 4; kind++) {
		o.io.ends.header = (struct frame_header){.ipv6 = kind & 1, .vlan = kind & 2 ? 5 : 0};
		take_joined(&o);
	}
}

/* UDP sockets show no headers. */
static void joined_without_headers(void)
{
	struct run r = run_for(&OPTIONS);
	struct receiver rx;
	uint8_t payload[512] = {0};
	struct io_frame f = {.payload = payload, .payload_len = 400, .frame_len = 446};

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	frame_stamp(payload, (struct frame_label){OPTIONS.io.stream_id, 1, 3}, 1);
	receiver_take(&rx, &f, 1, 10, NULL);
	CHECK_EQUAL(rx.joined, 1);
	/* A frame that did not fit into its buffer is not read. */
	f.payload = NULL;
	receiver_take(&rx, &f, 1, 10, NULL);
	CHECK_EQUAL(rx.joined, 1);
	CHECK_EQUAL(rx.foreign, 1);
	receiver_free(&rx);
}

static void told_to_stop(void)
{
	struct run r = run_for(&OPTIONS);
	struct receiver rx;

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	CHECK(!receiver_done(&rx, 100));
	atomic_store(&control_stop_reason, STOP_LINE);
	CHECK(!receiver_done(&rx, 100));
	CHECK(!receiver_done(&rx, 100 + r.clock.hz - 1));
	CHECK(receiver_done(&rx, 100 + r.clock.hz));
	control_abandon = true;
	CHECK(receiver_done(&rx, 101));
	receiver_free(&rx);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		random_traffic(seed, 0);
		random_traffic(seed, 5);
		random_traffic(seed, 400);
	}
	windows_and_end();
	earlier_launch();
	sizes_of_a_mix();
	joined_datagrams();
	joined_without_headers();
	told_to_stop();
	return 0;
}
