/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames are dropped, reordered and duplicated, whatever the bursts; control frames never are. */
#include "forward/impair.h"

#include <arpa/inet.h>

#include "base/frame.h"
#include "check.h"
#include "option/options.h"

#define FRAMES 10000u

/* Frames that have left, as numbers from 1 to n. */
static struct {
	unsigned n, dropped, duplicated, control;
	uint32_t number[2 * FRAMES + 10];
} left;

/* Frames first to last, of which a multiple of `control_every` is a control frame, in bursts of random size.
 */
static void feed(
        struct impair *m, uint32_t first, uint32_t last, uint32_t control_every, enum impair_kind control)
{
	static struct impair_outcome out;
	static uint64_t seed = 99;

	while (first <= last) {
		unsigned n = 1 + (unsigned)(check_random(&seed) % 64);
		void *frames[64];
		uint8_t kinds[64];

		n = n < last - first + 1 ? n : last - first + 1;
		for (unsigned i = 0; i < n; i++) {
			frames[i] = (void *)(uintptr_t)(first + i);
			kinds[i] = control_every && (first + i) % control_every == 0 ? (uint8_t)control
			                                                             : IMPAIR_DATA;
		}
		impair_burst(m, frames, kinds, n, &out);
		for (unsigned i = 0; i < out.passed; i++)
			left.number[left.n++] = (uint32_t)(uintptr_t)out.pass[i];
		for (unsigned i = 0; i < out.duplicated; i++) {
			unsigned times = 0;

			for (unsigned k = 0; k < out.passed; k++)
				times += out.pass[k] == out.duplicate[i];
			CHECK_EQUAL(times, 2);
		}
		left.dropped += out.dropped;
		left.duplicated += out.duplicated;
		left.control += out.control;
		first += n;
	}
}

static void begin(struct impair *m, uint32_t drop, uint32_t reorder, uint32_t duplicate)
{
	memset(&left, 0, sizeof(left));
	impair_init(m, drop, reorder, duplicate);
}

static void each_nth_is_dropped(uint32_t every)
{
	struct impair m;
	unsigned at = 0;

	begin(&m, every, 0, 0);
	feed(&m, 1, FRAMES, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.dropped, FRAMES / every);
	CHECK_EQUAL(left.dropped, FRAMES / every);
	for (uint32_t i = 1; i <= FRAMES; i++)
		if (i % every)
			CHECK_EQUAL(left.number[at++], i);
	CHECK_EQUAL(left.n, at);
}

static void each_nth_is_doubled(uint32_t every)
{
	struct impair m;
	unsigned at = 0;

	begin(&m, 0, 0, every);
	feed(&m, 1, FRAMES, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.duplicated, FRAMES / every);
	for (uint32_t i = 1; i <= FRAMES; i++) {
		CHECK_EQUAL(left.number[at++], i);
		if (i % every == 0)
			CHECK_EQUAL(left.number[at++], i);
	}
	CHECK_EQUAL(left.n, at);
}

/* A frame leaves after its successor in whatever burst; the last one waits. */
static void each_nth_is_displaced(uint32_t every)
{
	struct impair m;
	unsigned at = 0;

	begin(&m, 0, every, 0);
	feed(&m, 1, FRAMES, 0, IMPAIR_DATA);
	for (uint32_t i = 1; i <= FRAMES; i++) {
		if (i % every)
			CHECK_EQUAL(left.number[at++], i);
		if (i % every == 1 % every && i > 1)
			CHECK_EQUAL(left.number[at++], i - 1);
	}
	CHECK_EQUAL(left.n, at);
	CHECK((FRAMES % every == 0) == (m.held != NULL));
	CHECK_EQUAL(m.reordered, FRAMES / every - (FRAMES % every == 0));
	if (m.held)
		CHECK_EQUAL((uintptr_t)impair_take_held(&m), FRAMES);
	CHECK(!impair_take_held(&m));
}

static void each_counts_what_reaches_it(void)
{
	struct impair m;

	begin(&m, 100, 99, 98);
	feed(&m, 1, FRAMES, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.dropped, 100);
	CHECK_EQUAL(m.reordered + (m.held != NULL), 9900 / 99);
	CHECK_EQUAL(m.duplicated, (9900 - (m.held != NULL)) / 98);
	CHECK_EQUAL(left.n, FRAMES - m.dropped + m.duplicated - (m.held != NULL));
}

static void all_or_nothing(void)
{
	struct impair m;

	begin(&m, 1, 0, 0);
	CHECK(impair_acts(&m));
	feed(&m, 1, FRAMES, 10, IMPAIR_CONTROL);
	CHECK_EQUAL(left.n, FRAMES / 10);
	CHECK_EQUAL(left.control, FRAMES / 10);
	begin(&m, 0, 0, 0);
	CHECK(!impair_acts(&m));
	feed(&m, 1, FRAMES, 10, IMPAIR_CONTROL);
	CHECK_EQUAL(left.n, FRAMES);
}

/* Control frames are not counted, impaired or overtaken, and no earlier frame leaves after one. */
static void control_frames_are_left_alone(void)
{
	struct impair m;
	uint32_t data = 0, held = 0;
	unsigned at = 0;

	begin(&m, 0, 5, 0);
	feed(&m, 1, FRAMES, 7, IMPAIR_CONTROL);
	CHECK_EQUAL(left.control, FRAMES / 7);
	for (uint32_t i = 1; i <= FRAMES; i++) {
		if (i % 7 == 0 && held)
			CHECK_EQUAL(left.number[at++], held);
		if (i % 7 == 0) {
			held = 0;
			CHECK_EQUAL(left.number[at++], i);
		} else if (++data % 5 == 0) {
			CHECK(!held);
			held = i;
		} else {
			CHECK_EQUAL(left.number[at++], i);
			if (held)
				CHECK_EQUAL(left.number[at++], held);
			held = 0;
		}
	}
	CHECK_EQUAL(left.n, at);
	begin(&m, 3, 0, 0);
	feed(&m, 1, FRAMES, 7, IMPAIR_CONTROL);
	CHECK_EQUAL(m.dropped, (FRAMES - FRAMES / 7) / 3);
	begin(&m, 0, 0, 3);
	feed(&m, 1, FRAMES, 7, IMPAIR_CONTROL);
	CHECK_EQUAL(m.duplicated, (FRAMES - FRAMES / 7) / 3);
}

/* Each launch has the same impairments, independent of earlier ones. */
static void an_end_mark_begins_anew(void)
{
	struct impair m;

	begin(&m, 10, 0, 0);
	feed(&m, 1, 9, 0, IMPAIR_DATA);
	feed(&m, 10, 10, 10, IMPAIR_END_MARK);
	feed(&m, 11, 19, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.dropped, 0);
	feed(&m, 20, 20, 20, IMPAIR_CONTROL);
	feed(&m, 21, 21, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.dropped, 1);
	CHECK_EQUAL(left.number[left.n - 1], 20);
}

/* A launch after one whose end marks were lost: the first frame restarts the counts. */
static void so_does_a_first_frame(void)
{
	struct impair m;

	begin(&m, 10, 0, 0);
	feed(&m, 1, 9, 0, IMPAIR_DATA);
	feed(&m, 10, 10, 10, IMPAIR_FIRST);
	feed(&m, 11, 18, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.dropped, 0);
	CHECK_EQUAL(left.control, 0);
	feed(&m, 19, 19, 0, IMPAIR_DATA);
	CHECK_EQUAL(m.dropped, 1);
	/* A frame that is held then is overtaken, not lost. */
	begin(&m, 0, 2, 0);
	feed(&m, 1, 2, 0, IMPAIR_DATA);
	feed(&m, 4, 4, 4, IMPAIR_FIRST);
	CHECK(left.n == 3 && left.number[1] == 4 && left.number[2] == 2 && !m.held);
}

static enum impair_kind kind_of(uint16_t window, uint64_t sequence, uint16_t port, uint32_t cut)
{
	struct options o = {.io.packet_size = 64, .io.ends.udp_port = 9};
	struct frame_match match;
	enum impair_kind kind;
	uint16_t stream = 0;
	uint8_t l2[60];

	frame_write_headers(l2, &o.io.ends, o.io.packet_size);
	frame_stamp(l2 + FRAME_HEADER_BYTES, (struct frame_label){3, window, sequence}, 12345);
	match = frame_match(&o.io.ends.header, port);
	kind = impair_classify(l2, sizeof(l2) - cut, &match, &stream);
	CHECK(kind == IMPAIR_DATA || stream == 3);
	return kind;
}

static void kinds(void)
{
	uint16_t stream;
	const struct frame_header plain = {0};
	struct frame_match match = frame_match(&plain, 9);
	uint8_t other[60] = {0};

	CHECK(kind_of(FRAME_WINDOW_CONTROL, 0, 9, 0) == IMPAIR_CONTROL);
	CHECK(kind_of(FRAME_WINDOW_CONTROL, 1, 9, 0) == IMPAIR_END_MARK);
	CHECK(kind_of(FRAME_WINDOW_CONTROL, FRAME_SEQUENCE_MASK, 9, 0) == IMPAIR_END_MARK);
	CHECK(kind_of(FRAME_WINDOW_WARMUP, 0, 9, 0) == IMPAIR_FIRST);
	CHECK(kind_of(1, 0, 9, 0) == IMPAIR_FIRST);
	CHECK(kind_of(1, 0, 10, 0) == IMPAIR_DATA);
	CHECK(kind_of(FRAME_WINDOW_WARMUP, 1, 9, 0) == IMPAIR_DATA);
	CHECK(kind_of(FRAME_WINDOW_LAST, 5, 9, 0) == IMPAIR_DATA);
	CHECK(kind_of(FRAME_WINDOW_CONTROL, 1, 10, 0) == IMPAIR_DATA); /* port of others */
	for (uint32_t cut = 1; cut <= 60; cut++)
		CHECK(kind_of(FRAME_WINDOW_CONTROL, 1, 9, cut) == IMPAIR_DATA);
	CHECK(impair_classify(other, sizeof(other), &match, &stream) == IMPAIR_DATA);
	/* With any headers, in any order. */
	for (unsigned i = 0; i < 64; i++) {
		struct options o = {.io.packet_size = 100, .io.ends.udp_port = 9};
		uint8_t l2[96];

		o.io.ends.header =
		        (struct frame_header){.ipv6 = i & 1, .tcp = i & 2, .vlan = (uint16_t)(i / 4 % 3)};
		frame_write_headers(l2, &o.io.ends, o.io.packet_size);
		frame_stamp(l2 + frame_header_bytes(&o.io.ends.header),
		        (struct frame_label){3, FRAME_WINDOW_CONTROL, i % 2}, 1);
		CHECK(impair_classify(l2, sizeof(l2), &match, &stream) ==
		        (i % 2 ? IMPAIR_END_MARK : IMPAIR_CONTROL));
	}
}

int main(void)
{
	static const uint32_t EVERY[] = {1, 2, 3, 7, 64, 100, FRAMES - 1, FRAMES, FRAMES + 1};

	for (size_t i = 0; i < sizeof(EVERY) / sizeof(EVERY[0]); i++) {
		each_nth_is_dropped(EVERY[i]);
		each_nth_is_doubled(EVERY[i]);
		if (EVERY[i] > 1)
			each_nth_is_displaced(EVERY[i]);
	}
	each_counts_what_reaches_it();
	all_or_nothing();
	control_frames_are_left_alone();
	an_end_mark_begins_anew();
	so_does_a_first_frame();
	kinds();
	return 0;
}
