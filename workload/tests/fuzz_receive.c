/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: arbitrary bytes as frames through parsing, accounting, checking and reflecting. Each frame of
 * the input is two bytes of length and its bytes; an odd first byte of the length puts right headers in front
 * of them.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/frame.h"
#include "traffic/receiver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct options OPTIONS = {.app_name = "server",
        .packet_size = 72,
        .burst = 4,
        .touch = true,
        .stream_id = 1,
        .ends.udp_port = 9};

/* One frame in a buffer of exactly its size, so that a sanitizer sees each byte too far. */
static uint8_t *next_frame(const uint8_t **data, size_t *size, uint32_t *length)
{
	bool headed = (*data)[0] & 1;
	uint32_t body = (*data)[1], head = headed ? FRAME_HEADER_BYTES : 0;
	uint8_t *frame;

	*data += 2;
	*size -= 2;
	body = body > *size ? (uint32_t)*size : body;
	*length = head + body;
	frame = malloc(*length ? *length : 1);
	assert(frame);
	if (headed) {
		struct options o = OPTIONS;

		o.packet_size = *length + FRAME_FCS_BYTES;
		frame_write_headers(frame, &o.ends, o.packet_size);
	}
	memcpy(frame + head, *data, body);
	*data += body;
	*size -= body;
	return frame;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct receiver rx;
	static struct run r;
	struct io_frame frames[4];
	uint8_t *buffers[4], verdicts[4];
	uint64_t now = 1;

	if (!rx.windows) { /* kept over inputs: what one frame does to the next matters */
		r = (struct run){.o = &OPTIONS, .clock = {.hz = 1000000000, .ns_per_cycle = 1}};
		if (!receiver_init(&rx, &r, NULL, NULL))
			abort();
	}
	while (size >= 2) {
		unsigned n = 0;

		for (; n < 4 && size >= 2; n++) {
			uint32_t length;

			buffers[n] = next_frame(&data, &size, &length);
			frames[n] = (struct io_frame){.l2 = buffers[n], .frame_len = (uint16_t)length};
			frames[n].payload = frame_parse(
			        buffers[n], length, OPTIONS.ends.udp_port, &frames[n].payload_len);
			assert(!frames[n].payload || frames[n].payload_len <= length - FRAME_HEADER_BYTES);
		}
		receiver_take(&rx, frames, n, now++, verdicts);
		assert(account_next(rx.account) == rx.received + account_gaps(rx.account));
		for (unsigned i = 0; i < n; i++) {
			if (verdicts[i] != RECEIVER_NOT_OURS)
				frame_reflect(frames[i].l2);
			free(buffers[i]);
		}
	}
	return 0;
}
