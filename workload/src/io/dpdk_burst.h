/* SPDX-License-Identifier: BSD-3-Clause */
/* What a DPDK port of one queue pair (dpdk.c) and one of several (dpdk_queues.c) have in common. */
#ifndef ICBENCH_DPDK_BURST_H
#define ICBENCH_DPDK_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "io/dpdk_port.h"
#include "io/io.h"

struct rte_mbuf;

/* The bytes of a plain header (frame_is_plain()) that say "IPv4, UDP, this length, this port", as three words
 * to compare. */
struct header_match {
	uint64_t at12, at12_mask; /* EtherType, version and length, (TOS), total length, (identification) */
	uint32_t at20, at20_mask; /* fragment, (TTL), protocol */
	uint32_t at36, at36_mask; /* destination port, UDP length */
};

struct io {
	struct dpdk_port port;
	struct header_match match;
	struct frame_match ours; /* what header_match says in few words, for any headers */
	uint16_t payload_len;    /* of all frames; 0: of a mix, each says its own */
	uint32_t least_bytes;    /* of a frame that is looked at */
	unsigned lent, received, refused_bursts;
	struct rte_mbuf *tx[IO_BURST_MAX];
	struct rte_mbuf *rx[IO_BURST_MAX];
	struct rte_mbuf *rest[IO_BURST_MAX];
	struct dpdk_queues *queues; /* NULL where there is one */
};

/* Operations (io.h) that both have. */
struct io *dpdk_open(const struct io_config *c, char *err, size_t err_len);
void dpdk_close(struct io *io);
void dpdk_facts(struct io *io, struct io_facts *facts);
bool dpdk_link_up(struct io *io);
bool dpdk_peer_left(struct io *io);
unsigned dpdk_tx_acquire(struct io *io, uint8_t *payload[], unsigned n);
void dpdk_tx_resize(struct io *io, unsigned i, uint32_t bytes);
void dpdk_rx_release(struct io *io);
uint64_t dpdk_missed(struct io *io);

/* A port refused a whole burst: 0, or -1 with errno once its link is gone. */
int dpdk_refused(struct io *io);
/* Makes frames of the first so many buffers received. */
void dpdk_describe_burst(struct io *io, struct io_frame *frames, unsigned got);
/* Sends those of the buffers first to end - 1 received that are to be kept (of n) back by that queue, and
 * frees the others. Returns how many were taken. */
unsigned dpdk_reflect(
        struct io *io, uint16_t queue, unsigned first, unsigned end, const bool *keep, unsigned n);

#endif
