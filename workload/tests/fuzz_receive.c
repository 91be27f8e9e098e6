/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: arbitrary bytes as frames through parsing, accounting, checking and reflecting. The first byte
 * of the input says which headers are expected. Each frame behind it is two bytes of length and its bytes; an
 * odd first byte of the length puts right headers in front of them.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/frame.h"
#include "traffic/receiver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADERS 8u

static const struct options OPTIONS = {.app_name = "server",
        .packet_size = 104,
        .burst = 4,
        .touch = true,
        .stream_id = 1,
        .ends.udp_port = 9};

/* What is kept over inputs, since what one frame does to the next matters: one for each kind of headers. */
static struct end {
	struct options o;
	struct frame_match match;
	struct run run;
	struct receiver rx;
} ends[HEADERS];

static void open_ends(void)
{
	for (unsigned i = 0; i < HEADERS; i++) {
		struct end *e = &ends[i];

		e->o = OPTIONS;
		e->o.ends.header =
		        (struct frame_header){.ipv6 = i & 1, .tcp = i & 2, .vlan = i & 4 ? 100 : 0};
		e->match = frame_match(&e->o.ends.header, e->o.ends.udp_port);
		e->run = (struct run){.o = &e->o, .clock = {.hz = 1000000000, .ns_per_cycle = 1}};
		if (!receiver_init(&e->rx, &e->run, NULL, NULL))
			abort();
	}
}

/* One frame in a buffer of exactly its size, so that a sanitizer sees each byte too far. */
static uint8_t *next_frame(const struct end *e, const uint8_t **data, size_t *size, uint32_t *length)
{
	bool headed = (*data)[0] & 1;
	uint32_t body = (*data)[1], head = headed ? e->match.header_bytes : 0;
	uint8_t *frame;

	*data += 2;
	*size -= 2;
	body = body > *size ? (uint32_t)*size : body;
	*length = head + body;
	frame = malloc(*length ? *length : 1);
	assert(frame);
	if (headed)
		frame_write_headers(frame, &e->o.ends, *length + FRAME_FCS_BYTES);
	memcpy(frame + head, *data, body);
	*data += body;
	*size -= body;
	return frame;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct io_frame frames[4];
	uint8_t *buffers[4], verdicts[4];
	uint64_t now = 1;
	struct end *e;

	if (!ends[0].rx.windows)
		open_ends();
	if (!size)
		return 0;
	e = &ends[data[0] % HEADERS];
	data++;
	size--;
	while (size >= 2) {
		unsigned n = 0;

		for (; n < 4 && size >= 2; n++) {
			uint32_t length;

			buffers[n] = next_frame(e, &data, &size, &length);
			frames[n] = (struct io_frame){.l2 = buffers[n], .frame_len = (uint16_t)length};
			frames[n].payload =
			        frame_parse(buffers[n], length, &e->match, &frames[n].payload_len);
			assert(!frames[n].payload || frames[n].payload_len <= length - e->match.header_bytes);
			frame_detect(buffers[n], length);
		}
		receiver_take(&e->rx, frames, n, now++, verdicts);
		assert(account_next(e->rx.account) == e->rx.received + account_gaps(e->rx.account));
		for (unsigned i = 0; i < n; i++) {
			if (verdicts[i] != RECEIVER_NOT_OURS)
				frame_reflect(frames[i].l2, &e->o.ends.header);
			free(buffers[i]);
		}
	}
	return 0;
}
