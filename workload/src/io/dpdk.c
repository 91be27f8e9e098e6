/* SPDX-License-Identifier: BSD-3-Clause */
/* The per-burst part of a DPDK port.
 *
 * Transmit buffers come from a pool whose data rooms already contain the headers. A frame costs only its
 * mbuf's lengths and the bytes that the application writes.
 */
#include "io/dpdk_burst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/frame.h"
#include "io/dpdk_compat.h"
#include "io/dpdk_eal.h"

/* How many frames ahead the first line of a frame is prefetched. */
#define PREFETCH_AHEAD 8u
/* Consecutive refused bursts before the link is checked. */
#define REFUSED_CHECK (1u << 16)

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static struct header_match make_match(const struct io_config *c)
{
	const uint8_t size = c->pattern.cycle ? 0 : 0xff;
	const uint8_t mask12[8] = {0xff, 0xff, 0xff, 0, size, size, 0, 0};
	const uint8_t mask20[4] = {0x3f, 0xff, 0, 0xff};
	const uint8_t mask36[4] = {0xff, 0xff, size, size};
	uint8_t l2[FRAME_HEADER_BYTES];
	struct header_match match = {
	        .at12_mask = load64(mask12), .at20_mask = load32(mask20), .at36_mask = load32(mask36)};

	frame_write_headers(l2, &c->ends, c->packet_size);
	match.at12 = load64(l2 + 12) & match.at12_mask;
	match.at20 = load32(l2 + 20) & match.at20_mask;
	match.at36 = load32(l2 + 36) & match.at36_mask;
	return match;
}

static bool is_expected(const struct header_match *match, const uint8_t *l2)
{
	return (load64(l2 + 12) & match->at12_mask) == match->at12 &&
	       (load32(l2 + 20) & match->at20_mask) == match->at20 &&
	       (load32(l2 + 36) & match->at36_mask) == match->at36;
}

static bool open_only_port(struct dpdk_port *port, const struct io_config *c, char *err, size_t err_len)
{
	unsigned ports;

	if (!dpdk_eal_start(c, err, err_len))
		return false;
	ports = rte_eth_dev_count_avail();
	if (ports != 1)
		dpdk_fail(err, err_len,
		        "EAL found %u ports: name exactly one after --, with --vdev or --allow", ports);
	else if (dpdk_port_open(port, (uint16_t)rte_eth_find_next(0), NULL, c, err, err_len))
		return true;
	dpdk_eal_stop();
	return false;
}

struct io *dpdk_open(const struct io_config *c, char *err, size_t err_len)
{
	struct io *io = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*io), RTE_CACHE_LINE_SIZE));

	if (!io) {
		snprintf(err, err_len, "no memory for %zu bytes", sizeof(*io));
		return NULL;
	}
	memset(io, 0, sizeof(*io));
	io->ours = frame_match(&c->ends.header, io_heard_port(c));
	io->payload_len =
	        c->pattern.cycle ? 0 : (uint16_t)frame_payload_bytes(&c->ends.header, c->packet_size);
	if (frame_is_plain(&c->ends.header))
		io->match = make_match(c);
	if (!open_only_port(&io->port, c, err, err_len)) {
		free(io);
		return NULL;
	}
	io->least_bytes = c->pattern.cycle ? FRAME_PACKET_MIN - FRAME_FCS_BYTES : io->port.frame_bytes;
	if (!frame_is_plain(&c->ends.header))
		io->least_bytes = UINT32_MAX; /* all frames go through frame_parse() */
	return io;
}

/* Whether a buffer can be returned to its pool directly: no other reference, one segment, no external data.
 * Reads only its first cache line. */
static bool is_plain(const struct rte_mbuf *mbuf)
{
	return rte_mbuf_refcnt_read(mbuf) == 1 && mbuf->nb_segs == 1 && RTE_MBUF_DIRECT(mbuf);
}

/* Received buffers come from the pool of the queue, so the pool of plain buffers need not be looked up. */
void dpdk_rx_release(struct io *io)
{
	bool plain = true;

	for (unsigned i = 0; i < io->received; i++)
		plain &= is_plain(io->rx[i]);
	if (likely(plain))
		rte_mempool_put_bulk(io->port.rx_pool, (void **)io->rx, io->received);
	else
		rte_pktmbuf_free_bulk(io->rx, io->received);
	io->received = 0;
}

/* Nothing reports room in a full ring. */
void dpdk_wait(struct io *io, unsigned events, uint64_t ns)
{
	dpdk_port_wait(
	        &io->port, events & IO_RX ? 1 : 0, events & IO_TX && ns > IO_FULL_NS ? IO_FULL_NS : ns);
}

void dpdk_close(struct io *io)
{
	dpdk_rx_release(io);
	rte_pktmbuf_free_bulk(io->tx, io->lent);
	dpdk_port_close(&io->port);
	dpdk_eal_stop();
	free(io);
}

void dpdk_facts(struct io *io, struct io_facts *facts)
{
	facts->driver = io->port.driver;
	facts->ring = io->port.tx_ring;
	dpdk_port_mac(&io->port, facts->mac);
}

bool dpdk_link_up(struct io *io)
{
	return dpdk_port_link_up(&io->port);
}

bool dpdk_peer_left(struct io *io)
{
	return dpdk_port_peer_left(&io->port);
}

unsigned dpdk_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	uint16_t bytes = (uint16_t)io->port.frame_bytes, header = (uint16_t)io->ours.header_bytes;

	if (n > io->lent) {
		/* A direct call of the pool: its buffers have one reference, one segment and no successor. */
		if (rte_mempool_get_bulk(io->port.tx_pool, (void **)(io->tx + io->lent), n - io->lent) == 0) {
			for (unsigned i = io->lent; i < n; i++) {
				struct rte_mbuf *mbuf = io->tx[i];

				mbuf->data_off = RTE_PKTMBUF_HEADROOM;
				mbuf->ol_flags = 0;
				mbuf->data_len = bytes;
				mbuf->pkt_len = bytes;
			}
			io->lent = n;
		} else {
			n = io->lent;
		}
	}
	for (unsigned i = 0; i < n; i++)
		payload[i] = rte_pktmbuf_mtod_offset(io->tx[i], uint8_t *, header);
	return n;
}

int dpdk_refused(struct io *io)
{
	if (++io->refused_bursts < REFUSED_CHECK)
		return 0;
	io->refused_bursts = 0;
	if (dpdk_port_link_up(&io->port))
		return 0;
	errno = ENETDOWN;
	return -1;
}

static int dpdk_tx_commit(struct io *io, unsigned n)
{
	unsigned taken = io->port.started ? rte_eth_tx_burst(io->port.id, 0, io->tx, (uint16_t)n) : 0;

	io->lent -= taken;
	if (taken && io->lent)
		memmove(io->tx, io->tx + taken, io->lent * sizeof(io->tx[0]));
	if (!taken && n)
		return dpdk_refused(io);
	io->refused_bursts = 0;
	return (int)taken;
}

/* Describes a frame that does not match at first sight. Linearizes it and reinserts its VLAN tag if
 * possible. */
static void describe_other(const struct io *io, struct rte_mbuf *mbuf, struct io_frame *frame)
{
	bool whole = rte_pktmbuf_linearize(mbuf) == 0;

	if (whole && mbuf->ol_flags & io->port.untagged)
		whole = rte_vlan_insert(&mbuf) == 0;
	frame->l2 = rte_pktmbuf_mtod(mbuf, uint8_t *);
	frame->frame_len = (uint16_t)(mbuf->pkt_len + FRAME_FCS_BYTES);
	frame->l2_len = mbuf->data_len;
	frame->payload = NULL;
	if (whole)
		frame->payload = frame_parse(frame->l2, mbuf->data_len, &io->ours, &frame->payload_len);
}

/* Returns the payload bytes of an expected frame of a mix; 0 if its lengths are inconsistent. */
static uint16_t mixed_payload(const uint8_t *l2, uint32_t bytes)
{
	uint16_t ip_len, udp_len;

	memcpy(&ip_len, l2 + FRAME_ETH_BYTES + 2, sizeof(ip_len));
	memcpy(&udp_len, l2 + FRAME_ETH_BYTES + FRAME_IP_BYTES + 4, sizeof(udp_len));
	ip_len = be16toh(ip_len);
	udp_len = be16toh(udp_len);
	if (ip_len != FRAME_IP_BYTES + udp_len || udp_len < FRAME_UDP_BYTES ||
	        ip_len > bytes - FRAME_ETH_BYTES)
		return 0;
	return (uint16_t)(udp_len - FRAME_UDP_BYTES);
}

static void describe(const struct io *io, struct rte_mbuf *mbuf, struct io_frame *frame)
{
	uint8_t *l2 = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint16_t payload_len = io->payload_len;
	bool expected = mbuf->data_len >= io->least_bytes && is_expected(&io->match, l2) &&
	                !(mbuf->ol_flags & io->port.untagged);

	if (expected && !payload_len)
		payload_len = mixed_payload(l2, mbuf->data_len);
	if (likely(expected && payload_len)) {
		frame->l2 = l2;
		frame->frame_len = (uint16_t)(mbuf->pkt_len + FRAME_FCS_BYTES);
		frame->l2_len = mbuf->data_len;
		frame->payload = l2 + FRAME_HEADER_BYTES;
		frame->payload_len = payload_len;
	} else {
		describe_other(io, mbuf, frame);
	}
}

void dpdk_describe_burst(struct io *io, struct io_frame *frames, unsigned got)
{
	for (unsigned i = 0; i < RTE_MIN(got, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(io->rx[i], void *));
	for (unsigned i = 0; i < got; i++) {
		if (i + PREFETCH_AHEAD < got)
			rte_prefetch0(rte_pktmbuf_mtod(io->rx[i + PREFETCH_AHEAD], void *));
		describe(io, io->rx[i], &frames[i]);
	}
	io->received = got;
}

static int dpdk_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	unsigned got = rte_eth_rx_burst(io->port.id, 0, io->rx, (uint16_t)n);

	dpdk_describe_burst(io, frames, got);
	return (int)got;
}

unsigned dpdk_reflect(
        struct io *io, uint16_t queue, unsigned first, unsigned end, const bool *keep, unsigned n)
{
	struct rte_mbuf *out[IO_BURST_MAX];
	unsigned kept = 0, rest = 0, taken;

	for (unsigned i = first; i < end; i++) {
		struct rte_mbuf *mbuf = io->rx[i];

		if (i >= n || !keep[i]) {
			io->rest[rest++] = mbuf;
			continue;
		}
		frame_reflect(rte_pktmbuf_mtod(mbuf, uint8_t *), &io->ours.header);
		mbuf->ol_flags = 0; /* receive flags of the driver would be transmit requests */
		out[kept++] = mbuf;
	}
	taken = rte_eth_tx_burst(io->port.id, queue, out, (uint16_t)kept);
	rte_pktmbuf_free_bulk(out + taken, kept - taken);
	rte_pktmbuf_free_bulk(io->rest, rest);
	return taken;
}

static int dpdk_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	unsigned taken = dpdk_reflect(io, 0, 0, io->received, keep, n);

	io->received = 0;
	return (int)taken;
}

void dpdk_tx_resize(struct io *io, unsigned i, uint32_t bytes)
{
	io->tx[i]->data_len = (uint16_t)bytes;
	io->tx[i]->pkt_len = bytes;
}

uint64_t dpdk_missed(struct io *io)
{
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(io->port.id, &stats))
		return 0;
	return stats.imissed + stats.ierrors + stats.rx_nombuf;
}

const struct io_ops io_dpdk = {
        .name = "dpdk",
        .sees_l2 = true,
        .open = dpdk_open,
        .close = dpdk_close,
        .facts = dpdk_facts,
        .link_up = dpdk_link_up,
        .peer_left = dpdk_peer_left,
        .tx_acquire = dpdk_tx_acquire,
        .tx_commit = dpdk_tx_commit,
        .rx_poll = dpdk_rx_poll,
        .rx_release = dpdk_rx_release,
        .rx_reflect = dpdk_rx_reflect,
        .wait = dpdk_wait,
        .tx_resize = dpdk_tx_resize,
        .missed = dpdk_missed,
};
