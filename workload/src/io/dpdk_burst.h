/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by DPDK ports with one queue pair (dpdk.c) and with several (dpdk_queues.c). */
#ifndef ICBENCH_DPDK_BURST_H
#define ICBENCH_DPDK_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "io/dpdk_port.h"
#include "io/io.h"

struct rte_mbuf;

/* The bytes of a plain header (frame_is_plain()) that determine IPv4, UDP, length and port, as three words to
 * compare. */
struct header_match {
	uint64_t at12, at12_mask; /* EtherType, version and length, (TOS), total length, (identification) */
	uint32_t at20, at20_mask; /* fragment, (TTL), protocol */
	uint32_t at36, at36_mask; /* destination port, UDP length */
};

struct io {
	struct dpdk_port port;
	struct header_match match;
	struct frame_match ours; /* the same as header_match, for any headers */
	uint16_t payload_len;    /* of all frames; 0: of a mix, in which each frame states its own */
	uint32_t least_bytes;    /* smallest frame that can match */
	unsigned lent, received, refused_bursts;
	struct rte_mbuf *tx[IO_BURST_MAX];
	struct rte_mbuf *rx[IO_BURST_MAX];
	struct rte_mbuf *rest[IO_BURST_MAX];
	struct dpdk_queues *queues; /* NULL with one queue */
};

/* Operations (io.h) that both use. */
struct io *dpdk_open(const struct io_config *c, char *err, size_t err_len);
void dpdk_close(struct io *io);
void dpdk_facts(struct io *io, struct io_facts *facts);
bool dpdk_link_up(struct io *io);
bool dpdk_peer_left(struct io *io);
unsigned dpdk_tx_acquire(struct io *io, uint8_t *payload[], unsigned n);
void dpdk_tx_resize(struct io *io, unsigned i, uint32_t bytes);
void dpdk_rx_release(struct io *io);
void dpdk_wait(struct io *io, unsigned events, uint64_t ns);
uint64_t dpdk_missed(struct io *io);

/* Called when a port has refused a whole burst. Returns 0, or -1 with errno once the link is down. */
int dpdk_refused(struct io *io);
/* Describes the first `got` received buffers as frames. */
void dpdk_describe_burst(struct io *io, struct io_frame *frames, unsigned got);
/* Sends the received buffers first to end - 1 whose keep[] (of n) is set through that queue, and frees the
 * others. Returns how many were taken. */
unsigned dpdk_reflect(
        struct io *io, uint16_t queue, unsigned first, unsigned end, const bool *keep, unsigned n);

#endif
