/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/fault.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "io/prepare.h"

struct io {
	const struct io_ops *ops; /* the wrapped back end */
	struct io *io;
	const struct io_config *c;
	const struct fault *fault;
	const volatile bool *give_up;
	uint32_t length; /* payload bytes */
	uint64_t seen;   /* measuring frames */
	bool holding;    /* `held` waits for its successor */
	uint8_t *held;
	uint8_t *buffers; /* IO_BURST_MAX payloads */
};

static struct io_ops fault_ops;

/* Sends one copy, and waits while the port is full, so that the fault is deterministic. */
static bool send_copy(struct io *f, const uint8_t *payload)
{
	const struct frame_label label = frame_label(payload);
	uint8_t *out;

	while (!*f->give_up) {
		int taken = 0;

		if (f->ops->tx_acquire(f->io, &out, 1) == 1) {
			memcpy(out, payload, f->length);
			if (label.window == FRAME_WINDOW_CONTROL)
				prepare_control(f->c, f->ops, f->io, out);
			else
				prepare_frames(f->c, f->ops, f->io, &out, 1, label.sequence);
			prepare_checksum(f->c, f->ops, out);
			taken = f->ops->tx_commit(f->io, 1);
		}
		if (taken)
			return taken == 1;
		sched_yield();
	}
	return true;
}

static bool release_held(struct io *f)
{
	if (!f->holding)
		return true;
	f->holding = false;
	return send_copy(f, f->held);
}

static bool send_faulty(struct io *f, const uint8_t *payload)
{
	bool measuring = frame_label(payload).window != FRAME_WINDOW_CONTROL;
	bool struck = measuring && ++f->seen % f->fault->every == 0;

	if (struck && f->fault->kind == FAULT_DROP)
		return true;
	if (struck && f->fault->kind == FAULT_REORDER) {
		if (!release_held(f))
			return false;
		memcpy(f->held, payload, f->length);
		f->holding = true;
		return true;
	}
	if (struck && f->fault->kind == FAULT_DUPLICATE && !send_copy(f, payload))
		return false;
	return send_copy(f, payload) && release_held(f);
}

static unsigned fault_tx_acquire(struct io *f, uint8_t *payload[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		payload[i] = f->buffers + i * FRAME_PACKET_MAX;
	return n;
}

static int fault_tx_commit(struct io *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!send_faulty(f, f->buffers + i * FRAME_PACKET_MAX))
			return -1;
	return (int)n;
}

static void fault_close(struct io *f)
{
	f->ops->close(f->io);
	free(f->buffers);
	free(f->held);
	free(f);
}

static void fault_facts(struct io *f, struct io_facts *facts)
{
	f->ops->facts(f->io, facts);
}

static bool fault_link_up(struct io *f)
{
	return f->ops->link_up(f->io);
}

static bool fault_peer_left(struct io *f)
{
	return f->ops->peer_left && f->ops->peer_left(f->io);
}

static int fault_rx_poll(struct io *f, struct io_frame *frames, unsigned n)
{
	return f->ops->rx_poll(f->io, frames, n);
}

static void fault_rx_release(struct io *f)
{
	f->ops->rx_release(f->io);
}

static void fault_wait(struct io *f, unsigned events, uint64_t ns)
{
	f->ops->wait(f->io, events, ns);
}

static int fault_rx_reflect(struct io *f, const bool *keep, unsigned n)
{
	return f->ops->rx_reflect(f->io, keep, n);
}

static void fault_tx_flush(struct io *f)
{
	f->ops->tx_flush(f->io);
}

static unsigned fault_queue_counts(struct io *f, const uint64_t **sent, const uint64_t **received)
{
	return f->ops->queue_counts(f->io, sent, received);
}

struct io *io_fault_wrap(const struct io_ops **ops, struct io *inner, const struct io_config *c,
        const struct fault *fault, const volatile bool *give_up, char *err, size_t err_len)
{
	struct io *f = calloc(1, sizeof(*f));

	if (f) {
		*f = (struct io){.ops = *ops,
		        .io = inner,
		        .c = c,
		        .fault = fault,
		        .give_up = give_up,
		        .length = frame_payload_bytes(&c->ends.header, c->packet_size)};
		f->held = malloc(FRAME_PACKET_MAX);
		f->buffers = calloc(IO_BURST_MAX, FRAME_PACKET_MAX);
	}
	if (!f || !f->held || !f->buffers) {
		(*ops)->close(inner);
		if (f) {
			free(f->held);
			free(f->buffers);
		}
		free(f);
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	fault_ops = (struct io_ops){
	        .name = (*ops)->name,
	        .sees_l2 = false, /* checksums are written when frames leave */
	        .open = (*ops)->open,
	        .close = fault_close,
	        .facts = fault_facts,
	        .link_up = fault_link_up,
	        .peer_left = fault_peer_left,
	        .tx_acquire = fault_tx_acquire,
	        .tx_commit = fault_tx_commit,
	        .rx_poll = fault_rx_poll,
	        .rx_release = fault_rx_release,
	        .rx_reflect = fault_rx_reflect,
	        .wait = (*ops)->wait ? fault_wait : NULL,
	        .tx_flush = (*ops)->tx_flush ? fault_tx_flush : NULL,
	        .queue_counts = (*ops)->queue_counts ? fault_queue_counts : NULL,
	};
	*ops = &fault_ops;
	return f;
}
