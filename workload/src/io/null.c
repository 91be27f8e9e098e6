/* SPDX-License-Identifier: BSD-3-Clause */
/* No I/O, to measure the ceiling of the applications. A sender's frames vanish, a client's return at once,
 * and a receiver gets frames made here, in order, window by window, until --duration or --count.
 */
#include "io/io.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/frame.h"
#include "base/window.h"

#define ECHO_SLOTS (4 * IO_BURST_MAX)

struct io {
	const struct io_config *c;
	struct clock clock;
	struct window_cursor cursor;
	uint64_t made; /* frames that a receiver has got */
	bool echoes;   /* sent frames return, for a client */
	bool started, ended;
	unsigned slots, head,
	        tail;     /* frames are lent for sending at head; a client's echoes wait from tail to head */
	unsigned on_loan; /* received frames not yet released */
	uint32_t length, overhead; /* payload bytes of a frame; the other bytes of its packet size */
	size_t stride;
	uint8_t *buffers;
};

static uint8_t *slot(const struct io *io, unsigned i)
{
	return io->buffers + i % io->slots * io->stride;
}

static void null_close(struct io *io)
{
	free(io->buffers);
	free(io);
}

static struct io *null_open(const struct io_config *c, char *err, size_t err_len)
{
	struct io *io = calloc(1, sizeof(*io));

	if (io) {
		io->c = c;
		io->overhead = frame_overhead_bytes(&c->ends.header);
		io->length = frame_payload_bytes(&c->ends.header, c->packet_size);
		io->stride = (io->length + 63) / 64 * 64;
		io->echoes = c->role.sends && c->role.round_trip;
		io->slots = io->echoes ? ECHO_SLOTS : IO_BURST_MAX;
		io->buffers = aligned_alloc(64, io->stride * io->slots);
	}
	if (!io || !io->buffers) {
		free(io);
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	clock_anchor(&io->clock);
	clock_calibrate(&io->clock);
	return io;
}

static void null_facts(struct io *io, struct io_facts *facts)
{
	(void)io;
	(void)facts;
}

static bool null_link_up(struct io *io)
{
	(void)io;
	return true;
}

static unsigned null_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	if (io->echoes) {
		unsigned room = io->slots - (io->head - io->tail);

		n = n < room ? n : room;
	}
	for (unsigned i = 0; i < n; i++)
		payload[i] = slot(io, io->head + i);
	return n;
}

static int null_tx_commit(struct io *io, unsigned n)
{
	if (io->echoes)
		io->head += n;
	return (int)n;
}

static uint32_t size_of(const struct io *io, struct frame_label label)
{
	const struct io_config *c = io->c;

	return pattern_size(&c->pattern, label.window, label.sequence, c->packet_size);
}

/* Makes one frame with that window and sequence number, as a sender would. */
static void make(
        struct io *io, struct io_frame *frame, unsigned i, uint16_t window, uint64_t sequence, uint64_t now)
{
	struct frame_label label = {io_counted_stream(io->c), window, sequence};

	frame->l2 = NULL;
	frame->payload = slot(io, i);
	frame->frame_len = (uint16_t)size_of(io, label);
	frame->payload_len = (uint16_t)(frame->frame_len - io->overhead);
	frame_stamp(frame->payload, label, now);
	if (io->c->check_payload)
		frame_fill_padding(frame->payload, frame->payload_len, sequence);
}

static int end_stream(struct io *io, struct io_frame *frames, uint64_t now)
{
	io->ended = true;
	make(io, frames, 0, FRAME_WINDOW_CONTROL, io->made + 1, now);
	return 1;
}

static int make_burst(struct io *io, struct io_frame *frames, unsigned n)
{
	const struct io_schedule *s = &io->c->schedule;
	uint64_t now = clock_cycles();

	if (io->ended)
		return 0;
	if (!io->started) {
		window_start(&io->cursor, now, io->clock.hz, s->warmup_s, s->window_s, s->duration_s);
		io->started = true;
	}
	while (now >= io->cursor.end)
		if (!window_next(&io->cursor))
			return end_stream(io, frames, now);
	if (s->count && s->count - io->made < n) {
		n = (unsigned)(s->count - io->made);
		if (!n)
			return end_stream(io, frames, now);
	}
	for (unsigned i = 0; i < n; i++)
		make(io, &frames[i], i, io->cursor.number, io->made + i, now);
	io->made += n;
	return (int)n;
}

static int null_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	unsigned waiting = io->head - io->tail;

	if (!io->echoes)
		return make_burst(io, frames, n);
	n = n < waiting ? n : waiting;
	for (unsigned i = 0; i < n; i++) {
		uint8_t *payload = slot(io, io->tail + i);
		uint32_t size = size_of(io, frame_label(payload));

		frames[i] = (struct io_frame){
		        .payload = payload,
		        .payload_len = (uint16_t)(size - io->overhead),
		        .frame_len = (uint16_t)size,
		};
	}
	io->on_loan = n;
	return (int)n;
}

static void null_rx_release(struct io *io)
{
	io->tail += io->on_loan;
	io->on_loan = 0;
}

static int null_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	int taken = 0;

	for (unsigned i = 0; i < n; i++)
		taken += keep[i];
	null_rx_release(io);
	return taken;
}

const struct io_ops io_null = {
        .name = "null",
        .sees_l2 = false,
        .open = null_open,
        .close = null_close,
        .facts = null_facts,
        .link_up = null_link_up,
        .tx_acquire = null_tx_acquire,
        .tx_commit = null_tx_commit,
        .rx_poll = null_rx_poll,
        .rx_release = null_rx_release,
        .rx_reflect = null_rx_reflect,
};
