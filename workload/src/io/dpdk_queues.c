/* SPDX-License-Identifier: BSD-3-Clause */
/* Several queue pairs of one DPDK port. The hash of its flow (base/rss.h) determines the queue of a frame,
 * and all queues are polled in turn.
 *
 * An application offers frames in order and offers refused ones again. So frames of a full queue wait here,
 * at most one burst, and no more frames are taken until they have left: a full queue delays the other queues.
 */
#include "io/dpdk_burst.h"

#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/rss.h"

struct waiting {
	unsigned n;
	struct rte_mbuf *mbuf[IO_BURST_MAX];
};

struct dpdk_queues {
	struct rss rss;
	uint16_t count, next; /* `next` is polled first */
	unsigned waiting;     /* frames, in all queues */
	unsigned first[IO_QUEUES_MAX + 1], polled[IO_QUEUES_MAX];
	uint16_t polls; /* queues of the last poll, with the index of the first frame of each */
	uint64_t sent[IO_QUEUES_MAX], received[IO_QUEUES_MAX];
	struct waiting queue[IO_QUEUES_MAX];
};

static void queues_close(struct io *io)
{
	struct dpdk_queues *s = io->queues;

	for (unsigned q = 0; q < s->count; q++)
		rte_pktmbuf_free_bulk(s->queue[q].mbuf, s->queue[q].n);
	free(s);
	dpdk_close(io);
}

static struct io *queues_open(const struct io_config *c, char *err, size_t err_len)
{
	struct dpdk_queues *s = calloc(1, sizeof(*s));
	struct io *io;

	if (!s) {
		snprintf(err, err_len, "no memory for %zu bytes", sizeof(*s));
		return NULL;
	}
	io = dpdk_open(c, err, err_len);
	if (!io) {
		free(s);
		return NULL;
	}
	s->count = (uint16_t)c->queues;
	rss_prepare(&s->rss, &c->ends, c->queues);
	io->queues = s;
	return io;
}

static void queues_tx_flush(struct io *io)
{
	struct dpdk_queues *s = io->queues;

	for (uint16_t q = 0; q < s->count && s->waiting; q++) {
		struct waiting *w = &s->queue[q];
		unsigned taken;

		if (!w->n)
			continue;
		taken = rte_eth_tx_burst(io->port.id, q, w->mbuf, (uint16_t)w->n);
		w->n -= taken;
		s->waiting -= taken;
		if (taken && w->n)
			memmove(w->mbuf, w->mbuf + taken, w->n * sizeof(w->mbuf[0]));
	}
}

static bool counts(const uint8_t *payload)
{
	return frame_label(payload).window != FRAME_WINDOW_CONTROL;
}

static int queues_tx_commit(struct io *io, unsigned n)
{
	struct dpdk_queues *s = io->queues;

	if (!io->port.started)
		return dpdk_refused(io);
	if (s->waiting)
		queues_tx_flush(io);
	if (s->waiting)
		return dpdk_refused(io);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *l2 = rte_pktmbuf_mtod(io->tx[i], const uint8_t *);
		uint32_t q = rss_queue(&s->rss, l2);
		struct waiting *w = &s->queue[q];

		w->mbuf[w->n++] = io->tx[i];
		s->sent[q] += counts(l2 + io->ours.header_bytes);
	}
	s->waiting = n;
	io->lent -= n;
	if (io->lent)
		memmove(io->tx, io->tx + n, io->lent * sizeof(io->tx[0]));
	queues_tx_flush(io);
	if (s->waiting < n)
		io->refused_bursts = 0;
	return (int)n;
}

static void count_received(struct dpdk_queues *s, const struct io_frame *frames)
{
	for (unsigned p = 0; p < s->polls; p++)
		for (unsigned i = s->first[p]; i < s->first[p + 1]; i++)
			s->received[s->polled[p]] += frames[i].payload &&
			                             frames[i].payload_len >= FRAME_STAMP_BYTES &&
			                             counts(frames[i].payload);
}

static int queues_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	struct dpdk_queues *s = io->queues;
	unsigned got = 0;

	if (s->waiting)
		queues_tx_flush(io);
	for (s->polls = 0; s->polls < s->count && got < n; s->polls++) {
		uint16_t q = s->next;

		s->next = q + 1 == s->count ? 0 : (uint16_t)(q + 1);
		s->polled[s->polls] = q;
		s->first[s->polls] = got;
		got += rte_eth_rx_burst(io->port.id, q, io->rx + got, (uint16_t)(n - got));
	}
	s->first[s->polls] = got;
	dpdk_describe_burst(io, frames, got);
	count_received(s, frames);
	return (int)got;
}

static void queues_wait(struct io *io, unsigned events, uint64_t ns)
{
	dpdk_wait(io, io->queues->waiting ? events | IO_TX : events, ns);
}

/* An answer leaves through the queue of its request. */
static int queues_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	struct dpdk_queues *s = io->queues;
	unsigned taken = 0;

	for (unsigned p = 0; p < s->polls; p++) {
		uint16_t q = (uint16_t)s->polled[p];
		unsigned more = dpdk_reflect(io, q, s->first[p], s->first[p + 1], keep, n);

		s->sent[q] += more;
		taken += more;
	}
	io->received = 0;
	return (int)taken;
}

static unsigned queues_counts(struct io *io, const uint64_t **sent, const uint64_t **received)
{
	*sent = io->queues->sent;
	*received = io->queues->received;
	return io->queues->count;
}

const struct io_ops io_dpdk_queues = {
        .name = "dpdk",
        .sees_l2 = true,
        .open = queues_open,
        .close = queues_close,
        .facts = dpdk_facts,
        .link_up = dpdk_link_up,
        .peer_left = dpdk_peer_left,
        .tx_acquire = dpdk_tx_acquire,
        .tx_commit = queues_tx_commit,
        .rx_poll = queues_rx_poll,
        .rx_release = dpdk_rx_release,
        .rx_reflect = queues_rx_reflect,
        .wait = queues_wait,
        .tx_resize = dpdk_tx_resize,
        .tx_flush = queues_tx_flush,
        .queue_counts = queues_counts,
        .missed = dpdk_missed,
};
