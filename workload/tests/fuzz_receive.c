/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: arbitrary bytes as frames through parsing, accounting, checking and reflecting. The first byte
 * of the input says which headers and flows are expected. Each frame behind it is two bytes and a body: the
 * bits of the first byte are the enum's, the second is the body's length.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/frame.h"
#include "traffic/receiver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADERS 8u
#define FLOWS 4u
/* After this number the numbering restarts. */
#define LAST_SEQUENCE (UINT64_C(1) << 47)

/* Size limit of an input, which takes milliseconds even if each frame leaps. */
#define BYTES_MAX 512u

/* Bits of a frame's first byte: right headers stand before the body; a whole frame of ours, whose body is its
 * window (255: control) and its number. The others tell how far that is from the next one: a leap to six
 * bytes, a leap by four, or near by, two with a sign.
 */
enum frame_kind { HEADED = 1, STAMPED = 2, LEAP_BITS = 0xfc, ANYWHERE = 0x54, FAR = 0xa8 };

#define LABEL_BYTES 7u

static const struct options OPTIONS = {
        .app_name = "server", .io.packet_size = 104, .io.burst = 4, .io.stream_id = 1, .io.ends.udp_port = 9};
/* One flow, checked and not; flows that move on with the sizes; flows of Zipf's law. */
static const struct flow_pattern SHAPES[FLOWS] = {{0}, {0},
        {.flows = 12, .cycle = 4, .sizes = {104, 200, 104, 300}, .field = PATTERN_MACS},
        {.flows = 5, .zipf = true}};

/* State that is kept over inputs, since one frame affects the next. */
static struct end {
	struct options o;
	struct frame_match match;
	struct run run;
	struct receiver rx;
} ends[HEADERS * FLOWS];

static struct end *open_end(unsigned i)
{
	struct end *e = &ends[i % (HEADERS * FLOWS)];

	if (e->rx.windows)
		return e;
	e->o = OPTIONS;
	e->o.io.ends.header = (struct frame_header){.ipv6 = i & 1, .tcp = i & 2, .vlan = i & 4 ? 100 : 0};
	e->o.io.pattern = SHAPES[i / HEADERS % FLOWS];
	e->o.io.check_payload = i / HEADERS % FLOWS;
	e->match = frame_match(&e->o.io.ends.header, e->o.io.ends.udp_port);
	e->run = (struct run){.o = &e->o, .clock = {.hz = 1000000000, .ns_per_cycle = 1}};
	if (!pattern_prepare(&e->o.io.pattern) || !receiver_init(&e->rx, &e->run, NULL, NULL))
		abort();
	return e;
}

static void finish(struct end *e)
{
	struct json j = {0};

	json_begin_line(&j, "summary");
	receiver_summary(&e->rx, &j);
	json_end_line(&j);
	json_free(&j);
	tracker_free(e->rx.tracker);
	e->rx.tracker = tracker_new();
	assert(e->rx.tracker);
	if (e->rx.flows.pattern)
		tracker_watch(e->rx.tracker, flows_note_lost, &e->rx.flows);
	e->rx.received = e->rx.end_mark = 0;
}

static struct frame_label label_of(const struct end *e, unsigned kind, const uint8_t *body)
{
	struct frame_label label = {.stream = OPTIONS.io.stream_id,
	        .window = body[0] == UINT8_MAX ? FRAME_WINDOW_CONTROL : body[0]};
	uint64_t number = 0;

	for (unsigned i = 1; i < LABEL_BYTES; i++)
		number = number << 8 | body[i];
	if ((kind & LEAP_BITS) == FAR)
		number = tracker_next(e->rx.tracker) + (uint32_t)number;
	else if ((kind & LEAP_BITS) != ANYWHERE)
		number = tracker_next(e->rx.tracker) + (uint64_t)(int16_t)number;
	label.sequence = number & FRAME_SEQUENCE_MASK;
	return label;
}

/* Puts one frame into a buffer of exactly its size, so that a sanitizer detects reads past its end. */
static uint8_t *next_frame(const struct end *e, const uint8_t **data, size_t *size, uint32_t *length)
{
	unsigned kind = (*data)[0];
	uint32_t taken = (*data)[1], head = kind & (HEADED | STAMPED) ? e->match.header_bytes : 0;
	struct frame_label label = {0};
	uint8_t *frame;

	*data += 2;
	*size -= 2;
	taken = taken > *size ? (uint32_t)*size : taken;
	*length = head + taken;
	if (taken < LABEL_BYTES)
		kind &= ~(unsigned)STAMPED;
	if (kind & STAMPED) {
		label = label_of(e, kind, *data);
		*length = pattern_size(&e->o.io.pattern, label.window, label.sequence, e->o.io.packet_size) -
		          FRAME_FCS_BYTES;
	}
	frame = malloc(*length ? *length : 1);
	assert(frame);
	if (head)
		frame_write_headers(frame, &e->o.io.ends, *length + FRAME_FCS_BYTES);
	if (kind & STAMPED) {
		frame_stamp(frame + head, label, 1);
		frame_fill_padding(frame + head, *length - head, label.sequence);
		frame_write_checksum(frame, &e->o.io.ends.header, false);
	} else {
		memcpy(frame + head, *data, taken);
	}
	*data += taken;
	*size -= taken;
	return frame;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct io_frame frames[4];
	uint8_t *buffers[4], verdicts[4];
	uint64_t now = 1;
	unsigned first;
	struct end *e;

	if (!size)
		return 0;
	first = data[0];
	size = size > BYTES_MAX ? BYTES_MAX : size;
	e = open_end(first);
	data++;
	size--;
	while (size >= 2) {
		unsigned n = 0;

		for (; n < 4 && size >= 2; n++) {
			uint32_t length;

			buffers[n] = next_frame(e, &data, &size, &length);
			frames[n] = (struct io_frame){
			        .l2 = buffers[n], .frame_len = (uint16_t)length, .l2_len = (uint16_t)length};
			frames[n].payload =
			        frame_parse(buffers[n], length, &e->match, &frames[n].payload_len);
			assert(!frames[n].payload || frames[n].payload_len <= length - e->match.header_bytes);
			frame_detect(buffers[n], length);
		}
		receiver_take(&e->rx, frames, n, now++, verdicts);
		for (unsigned i = 0; i < n; i++) {
			if (verdicts[i] != RECEIVER_NOT_OURS)
				frame_reflect(frames[i].l2, &e->o.io.ends.header);
			free(buffers[i]);
		}
	}
	/* Counting reads the whole map, so it is done for every eighth input. */
	assert(first / (HEADERS * FLOWS) ||
	        tracker_next(e->rx.tracker) == e->rx.received + tracker_gaps(e->rx.tracker));
	if (tracker_next(e->rx.tracker) > LAST_SEQUENCE)
		finish(e);
	return 0;
}
