/* SPDX-License-Identifier: BSD-3-Clause */
/* A forwarder's DPDK ports: mbufs of one pool, moved from port to port. */
#include "forward/io.h"

#include <stdio.h>
#include <stdlib.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/frame.h"
#include "io/dpdk_compat.h"
#include "io/dpdk_eal.h"
#include "io/dpdk_port.h"

struct forward_io {
	unsigned ports;
	struct rte_mempool *pool;
	struct dpdk_port port[IO_PORTS_MAX];
	char names[IO_PORTS_MAX][RTE_ETH_NAME_MAX_LEN];
};

static void dpdk_close(struct forward_io *io)
{
	for (unsigned i = 0; i < io->ports; i++)
		dpdk_port_close(&io->port[i]);
	rte_mempool_free(io->pool);
	dpdk_eal_stop();
	free(io);
}

static bool check_number(unsigned ports, char *err, size_t err_len)
{
	if (ports % 2 == 0 && ports <= IO_PORTS_MAX)
		return true;
	return dpdk_fail(err, err_len,
	        "EAL found %u ports: a forwarder needs pairs of them, at most %u ports; name them after --, "
	        "with --vdev or --allow",
	        ports, IO_PORTS_MAX);
}

static bool open_ports(
        struct forward_io *io, const struct io_config *c, uint32_t kept, char *err, size_t err_len)
{
	unsigned found = rte_eth_dev_count_avail();
	unsigned buffers = found * (2 * c->ring + dpdk_port_spare(c) + kept);
	uint16_t id;

	if (!check_number(found, err, err_len))
		return false;
	io->pool = dpdk_port_pool("icbench_forward", buffers, c->packet_size - FRAME_FCS_BYTES, err, err_len);
	if (!io->pool)
		return false;
	RTE_ETH_FOREACH_DEV(id)
	{
		if (!dpdk_port_open(&io->port[io->ports], id, io->pool, c, err, err_len))
			return false;
		if (rte_eth_dev_get_name_by_port(id, io->names[io->ports]))
			io->names[io->ports][0] = 0;
		io->ports++;
	}
	return true;
}

static struct forward_io *dpdk_open(const struct io_config *c, uint32_t kept, char *err, size_t err_len)
{
	struct forward_io *io = calloc(1, sizeof(*io));

	if (!io) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	if (!dpdk_eal_start(c, err, err_len)) {
		free(io);
		return NULL;
	}
	if (open_ports(io, c, kept, err, err_len))
		return io;
	dpdk_close(io);
	return NULL;
}

static unsigned dpdk_ports(const struct forward_io *io)
{
	return io->ports;
}

static void dpdk_facts(struct forward_io *io, unsigned port, struct forward_port_facts *facts)
{
	struct dpdk_port *p = &io->port[port];

	facts->name = io->names[port];
	facts->driver = p->driver;
	facts->ring = p->tx_ring;
	facts->link_up = dpdk_port_link_up(p);
	dpdk_port_mac(p, facts->mac);
}

static uint64_t dpdk_missed(struct forward_io *io, unsigned port)
{
	struct rte_eth_stats stats;

	if (rte_eth_stats_get(io->port[port].id, &stats))
		return 0;
	return stats.imissed + stats.ierrors + stats.rx_nombuf;
}

static int dpdk_rx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	struct dpdk_port *p = &io->port[port];

	if (unlikely(!p->started) && !dpdk_port_link_up(p))
		return 0;
	return rte_eth_rx_burst(p->id, 0, (struct rte_mbuf **)frames, (uint16_t)n);
}

static void dpdk_wait(struct forward_io *io, uint64_t ns)
{
	dpdk_port_wait(io->port, io->ports, ns);
}

static int dpdk_tx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	struct dpdk_port *p = &io->port[port];
	struct rte_mbuf **mbufs = (struct rte_mbuf **)frames;
	unsigned taken = 0;

	/* Some drivers take only part of a long burst at once, even if there is room. */
	while (likely(p->started) && taken < n) {
		unsigned got = rte_eth_tx_burst(p->id, 0, mbufs + taken, (uint16_t)(n - taken));

		if (!got)
			break;
		taken += got;
	}
	if (unlikely(taken < n))
		rte_pktmbuf_free_bulk(mbufs + taken, n - taken);
	return (int)taken;
}

static void dpdk_release(struct forward_io *io, void *frames[], unsigned n)
{
	RTE_SET_USED(io);
	rte_pktmbuf_free_bulk((struct rte_mbuf **)frames, n);
}

static void dpdk_share(void *frame)
{
	rte_pktmbuf_refcnt_update(frame, 1);
}

static uint8_t *dpdk_bytes(void *frame, uint32_t *length)
{
	const struct rte_mbuf *mbuf = frame;

	*length = mbuf->data_len;
	return rte_pktmbuf_mtod(mbuf, uint8_t *);
}

const struct forward_ops forward_dpdk = {
        .name = "dpdk",
        .open = dpdk_open,
        .close = dpdk_close,
        .ports = dpdk_ports,
        .facts = dpdk_facts,
        .missed = dpdk_missed,
        .rx = dpdk_rx,
        .wait = dpdk_wait,
        .tx = dpdk_tx,
        .release = dpdk_release,
        .share = dpdk_share,
        .bytes = dpdk_bytes,
};
