/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_eth_dev_rx_intr_ctl_q_get_fd() is experimental in DPDK 22.11. */
#define ALLOW_EXPERIMENTAL_API

#include "io/dpdk_port.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_bus.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "base/frame.h"
#include "io/dpdk_compat.h"
#include "io/dpdk_eal.h"
#include "io/io.h"

/* FCS, two VLAN tags and a virtio header, which drivers add to the MTU to check whether a frame fits. */
#define FRAME_ROOM_SPARE 64u
#define MTU_DEFAULT 1500u
/* Large enough for the batches in which drivers free, small enough for the L1 cache: a cache returns the
 * buffers that were freed last. */
#define POOL_CACHE 256u
#define RETRY_S 0.01
/* For memif: the sender waits for its receiver to leave, the receiver for the end marks to be over. Both are
 * short, because a switch at the other end does not leave. */
#define LINGER_SENDER_S 0.2
#define LINGER_RECEIVER_S 0.1
#define INTERRUPTS_S 1.0
#define MEMIF "net_memif"

struct rte_mempool *dpdk_port_pool(
        const char *name, unsigned buffers, uint32_t frame_bytes, char *err, size_t err_len)
{
	uint32_t data = RTE_ALIGN_CEIL(frame_bytes + FRAME_ROOM_SPARE, RTE_CACHE_LINE_SIZE);
	uint16_t room = (uint16_t)(RTE_PKTMBUF_HEADROOM + RTE_MAX(data, (uint32_t)RTE_MBUF_DEFAULT_DATAROOM));
	unsigned cache = RTE_MIN(POOL_CACHE, buffers / 2);
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, buffers, cache, 0, room, SOCKET_ID_ANY);

	if (!pool)
		dpdk_fail(err, err_len,
		        "no memory for %u buffers of %u bytes (about %u MiB): give more with -m after --, "
		        "or a smaller --ring "
		        "or --burst",
		        buffers, room, buffers * ((unsigned)room + 256) / (1u << 20) + 1);
	return pool;
}

struct header_writer {
	const struct io_config *c;
	uint16_t frame_bytes;
};

static void write_headers(struct rte_mempool *pool, void *arg, void *object, unsigned index)
{
	struct header_writer *writer = arg;
	struct rte_mbuf *mbuf = object;
	uint8_t *l2 = (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;

	RTE_SET_USED(pool);
	RTE_SET_USED(index);
	memset(l2, 0, writer->frame_bytes);
	frame_write_headers(l2, &writer->c->ends, writer->c->packet_size);
}

unsigned dpdk_port_spare(const struct io_config *c)
{
	return 2 * c->burst + POOL_CACHE * 3 / 2;
}

static bool make_pools(struct dpdk_port *port, const struct io_config *c, char *err, size_t err_len)
{
	struct header_writer writer = {.c = c, .frame_bytes = (uint16_t)port->frame_bytes};
	/* Buffers in the ring, lent to the application, in the cache. */
	unsigned spare = dpdk_port_spare(c);

	/* AF_XDP copies what it sends into buffers of the receive queue's pool, and a server sends buffers of
	 * that pool. */
	port->rx_pool =
	        dpdk_port_pool("icbench_rx", port->queues * ((unsigned)port->rx_ring + port->tx_ring) + spare,
	                port->frame_bytes, err, err_len);
	if (!port->rx_pool)
		return false;
	port->tx_pool = dpdk_port_pool("icbench_tx", (unsigned)port->queues * port->tx_ring + spare,
	        port->frame_bytes, err, err_len);
	if (!port->tx_pool)
		return false;
	rte_mempool_obj_iter(port->tx_pool, write_headers, &writer);
	return true;
}

/* Returns the number after NAME= in the device's arguments, or fallback. */
static unsigned device_argument(const struct rte_eth_dev_info *info, const char *name, unsigned fallback)
{
	const struct rte_devargs *devargs = rte_dev_devargs(info->device);
	size_t length = strlen(name);

	for (const char *at = devargs ? devargs->args : NULL; at && *at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, length) && at[length] == '=')
			return (unsigned)strtoul(at + length + 1, NULL, 10);
	}
	return fallback;
}

/* Returns the ring size of drivers that fix it when the device is created, and silently accept any number of
 * descriptors. */
static uint32_t fixed_ring(const struct rte_eth_dev_info *info, uint32_t asked)
{
	if (!strcmp(info->driver_name, MEMIF))
		return 1u << RTE_MIN(device_argument(info, "rsize", 10), 14u);
	if (!strcmp(info->driver_name, "net_virtio_user"))
		return RTE_MIN(asked, device_argument(info, "queue_size", 256));
	return asked;
}

static bool choose_mtu(struct dpdk_port *port, const struct rte_eth_dev_info *info, const struct io_config *c,
        uint32_t *mtu, char *err, size_t err_len)
{
	uint32_t needed = port->frame_bytes - FRAME_ETH_BYTES;

	*mtu = 0; /* the driver's default */
	if (!strcmp(info->driver_name, MEMIF)) {
		/* The driver reports a limit that it does not have, and loses and damages frames that need
		 * two of its buffers. */
		unsigned buffer = device_argument(info, "bsize", 2048);

		if (port->frame_bytes > buffer)
			return dpdk_fail(err, err_len,
			        "packet size %u does not fit into memif's buffers of %u bytes: add "
			        "bsize=%u to --vdev, at both ends",
			        c->packet_size, buffer, RTE_ALIGN_CEIL(port->frame_bytes, 1024u));
		return true;
	}
	if (needed <= MTU_DEFAULT)
		return true;
	if (needed > info->max_mtu || c->packet_size > info->max_rx_pktlen)
		return dpdk_fail(err, err_len,
		        "packet size %u is too large for %s: its largest frame is %u bytes", c->packet_size,
		        info->driver_name,
		        RTE_MIN(info->max_rx_pktlen,
		                (uint32_t)info->max_mtu + FRAME_ETH_BYTES + FRAME_FCS_BYTES));
	*mtu = needed;
	return true;
}

static bool setup_queues(struct dpdk_port *port, const struct rte_eth_dev_info *info, uint64_t tx_offloads,
        char *err, size_t err_len)
{
	struct rte_eth_txconf tx_conf = info->default_txconf;
	int ret = 0;

	tx_conf.offloads = tx_offloads;
	for (uint16_t q = 0; q < port->queues && !ret; q++)
		ret = rte_eth_tx_queue_setup(port->id, q, port->tx_ring, SOCKET_ID_ANY, &tx_conf);
	for (uint16_t q = 0; q < port->queues && !ret; q++)
		ret = rte_eth_rx_queue_setup(port->id, q, port->rx_ring, SOCKET_ID_ANY, NULL, port->rx_pool);
	if (ret)
		return dpdk_fail(err, err_len, "%s refuses queues of %u descriptors: %s", port->driver,
		        port->tx_ring, rte_strerror(-ret));
	return true;
}

/* Whether the peer closes first. If both send, the end with the lower stream stays. */
static bool leaves_last(const struct io_config *c)
{
	return c->role.sends && !(c->role.duplex && c->stream_id > io_counted_stream(c));
}

static bool has_no_interrupts(const struct dpdk_port *port, char *err, size_t err_len)
{
	return dpdk_fail(err, err_len, "%s has no receive interrupts: leave out --wait", port->driver);
}

/* Collects the interrupts of the receive queues. */
static bool open_interrupts(struct dpdk_port *port, char *err, size_t err_len)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET}; /* nothing need be read */
	bool ready;

	port->wakes = epoll_create1(EPOLL_CLOEXEC);
	ready = port->wakes >= 0;
	for (uint16_t q = 0; q < port->queues && ready; q++) {
		int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, q);

		ready = fd >= 0 && rte_eth_dev_rx_intr_enable(port->id, q) == 0 &&
		        rte_eth_dev_rx_intr_disable(port->id, q) == 0 &&
		        epoll_ctl(port->wakes, EPOLL_CTL_ADD, fd, &event) == 0;
	}
	return ready || has_no_interrupts(port, err, err_len);
}

static void enable_interrupts(struct dpdk_port *port, bool enable)
{
	struct epoll_event seen[IO_QUEUES_MAX];

	for (uint16_t q = 0; q < port->queues; q++) {
		if (enable)
			rte_eth_dev_rx_intr_enable(port->id, q);
		else
			rte_eth_dev_rx_intr_disable(port->id, q);
	}
	port->armed = enable;
	if (!enable)
		epoll_wait(port->wakes, seen, IO_QUEUES_MAX, 0);
}

void dpdk_port_wait(struct dpdk_port *ports, unsigned n, uint64_t ns)
{
	const struct timespec limit = clock_timespec(ns);
	struct pollfd wakes[IO_PORTS_MAX];
	bool armed = true;

	for (unsigned i = 0; i < n; i++) {
		if (!ports[i].armed && ports[i].started) {
			enable_interrupts(&ports[i], true);
			armed = false;
		}
		wakes[i] = (struct pollfd){.fd = ports[i].wakes, .events = POLLIN};
	}
	if (!armed)
		return;
	ppoll(wakes, n, &limit, NULL);
	for (unsigned i = 0; i < n; i++)
		if (ports[i].started)
			enable_interrupts(&ports[i], false);
}

static bool configure(struct dpdk_port *port, struct rte_mempool *shared, const struct io_config *c,
        char *err, size_t err_len)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	unsigned most;
	int ret = rte_eth_dev_info_get(port->id, &info);

	port->rx_pool = shared;
	if (ret)
		return dpdk_fail(err, err_len, "port %u does not say what it can do: %s", port->id,
		        rte_strerror(-ret));
	port->driver = info.driver_name;
	/* No driver is asked to strip tags. A card strips the tag of a VF's VLAN on its own. */
	conf.intr_conf.rxq = c->wait != IO_WAIT_POLL;
	port->untagged =
	        strcmp(rte_bus_name(rte_dev_bus(info.device)), "pci") ? RTE_MBUF_F_RX_VLAN_STRIPPED : 0;
	if (!strcmp(port->driver, MEMIF))
		port->linger_s = leaves_last(c) ? LINGER_SENDER_S : LINGER_RECEIVER_S;
	if (!choose_mtu(port, &info, c, &conf.rxmode.mtu, err, err_len))
		return false;
	/* Fast free requires that all frames of a queue come from one pool with one reference each. A server
	 * also sends received frames; a forwarder sends only those, and some of them twice. */
	if (c->role.sends || !(c->role.round_trip || c->role.forwards))
		conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	most = RTE_MIN(info.max_rx_queues, info.max_tx_queues);
	if (port->queues > most)
		return dpdk_fail(err, err_len,
		        "this %s has %u queue pairs, not %u: take as many, or give it more after --",
		        port->driver, most, port->queues);
	ret = rte_eth_dev_configure(port->id, port->queues, port->queues, &conf);
	if (ret)
		return dpdk_fail(err, err_len, "%s refuses %u queue%s each way for frames of %u bytes: %s",
		        port->driver, port->queues, port->queues > 1 ? "s" : "", c->packet_size,
		        rte_strerror(-ret));
	port->rx_ring = port->tx_ring = (uint16_t)fixed_ring(&info, c->ring);
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &port->rx_ring, &port->tx_ring);
	if (ret)
		return dpdk_fail(
		        err, err_len, "%s refuses --ring %u: %s", port->driver, c->ring, rte_strerror(-ret));
	return (shared || make_pools(port, c, err, err_len)) &&
	       setup_queues(port, &info, conf.txmode.offloads, err, err_len);
}

/* Reads the actual ring sizes: some drivers take fewer descriptors than requested. */
static void read_rings(struct dpdk_port *port)
{
	struct rte_eth_rxq_info rx;
	struct rte_eth_txq_info tx;

	if (!rte_eth_rx_queue_info_get(port->id, 0, &rx) && rx.nb_desc)
		port->rx_ring = rx.nb_desc;
	if (!rte_eth_tx_queue_info_get(port->id, 0, &tx) && tx.nb_desc)
		port->tx_ring = tx.nb_desc;
}

static bool start(struct dpdk_port *port, const struct io_config *c, char *err, size_t err_len)
{
	uint8_t mac[6];
	int ret = rte_eth_dev_start(port->id);

	port->started = ret == 0;
	/* A memif client connects when it starts; link_up() retries until its server is present. */
	if (ret && strcmp(port->driver, MEMIF) != 0)
		return dpdk_fail(err, err_len, "%s does not start: %s", port->driver, rte_strerror(-ret));
	read_rings(port);
	/* A port whose address differs from the one in its frames has to accept all frames. Virtual ports do
	 * so, and refuse to be told. */
	dpdk_port_mac(port, mac);
	if (memcmp(mac, c->ends.local_mac, sizeof(mac)) != 0 || c->role.any_frame) {
		(void)rte_eth_promiscuous_enable(port->id);
		/* A virtual function that must not receive all frames may still receive all multicast
		 * frames. */
		(void)rte_eth_allmulticast_enable(port->id);
	}
	return true;
}

static uint64_t deadline_in(double seconds)
{
	return rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());
}

static atomic_bool interrupts_seen;

static void note_interrupts(void *unused)
{
	RTE_SET_USED(unused);
	atomic_store(&interrupts_seen, true);
}

/* Waits until the interrupt thread has finished its current work: alarms run in it as well. */
static void wait_for_interrupts(void)
{
	uint64_t deadline = deadline_in(INTERRUPTS_S);

	atomic_store(&interrupts_seen, false);
	if (rte_eal_alarm_set(1, note_interrupts, NULL))
		return;
	while (!atomic_load(&interrupts_seen) && rte_rdtsc() < deadline)
		usleep(100);
	rte_eal_alarm_cancel(note_interrupts, NULL);
}

/* memif unmaps its rings in the interrupt thread as soon as the peer has left, even while this process uses
 * them, which crashes it. So a receiver stays until its sender has certainly sent the last end mark. The
 * sender, which no longer touches the rings, stays until the receiver has left. Each stops its port only when
 * that thread has finished: the thread reports "down" before it unmaps, and two threads doing so crash as
 * well. */
static void linger(struct dpdk_port *port)
{
	uint64_t deadline = deadline_in(port->linger_s);

	while (rte_rdtsc() < deadline && dpdk_port_link_up(port))
		usleep(1000);
}

static void close_port(struct dpdk_port *port)
{
	if (port->linger_s > 0 && port->started)
		linger(port);
	/* For virtio-user as well, whose peer's leaving is handled in that thread. */
	wait_for_interrupts();
	if (port->wakes >= 0)
		close(port->wakes);
	if (port->started)
		rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
	if (!port->shares_pool)
		rte_mempool_free(port->rx_pool);
	rte_mempool_free(port->tx_pool);
}

bool dpdk_port_open(struct dpdk_port *port, uint16_t id, struct rte_mempool *shared,
        const struct io_config *c, char *err, size_t err_len)
{
	*port = (struct dpdk_port){.id = id,
	        .wakes = -1,
	        .queues = (uint16_t)c->queues,
	        .shares_pool = shared != NULL,
	        .frame_bytes = c->packet_size - FRAME_FCS_BYTES};
	/* The driver of memif is named before it starts: closed at once, it crashes. */
	if (configure(port, shared, c, err, err_len) &&
	        (c->wait == IO_WAIT_POLL || strcmp(port->driver, "net_memif") != 0 ||
	                has_no_interrupts(port, err, err_len)) &&
	        start(port, c, err, err_len) &&
	        (c->wait == IO_WAIT_POLL || open_interrupts(port, err, err_len)))
		return true;
	close_port(port);
	return false;
}

void dpdk_port_close(struct dpdk_port *port)
{
	close_port(port);
}

/* A memif client gives its server buffers when it polls, not before, and until then the server's frames are
 * refused. So the client polls for no frames as soon as the link is up. */
static void stock(struct dpdk_port *port)
{
	struct rte_mbuf *none[1];

	for (uint16_t q = 0; q < port->queues; q++)
		(void)rte_eth_rx_burst(port->id, q, none, 0);
	port->stocked = true;
}

bool dpdk_port_link_up(struct dpdk_port *port)
{
	struct rte_eth_link link = {0};
	bool up;

	if (!port->started) {
		if (rte_rdtsc() < port->retry_cycles)
			return false;
		port->retry_cycles = deadline_in(RETRY_S);
		port->started = rte_eth_dev_start(port->id) == 0;
		if (!port->started)
			return false;
	}
	up = rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
	if (up && !port->stocked && !strcmp(port->driver, MEMIF))
		stock(port);
	return up;
}

bool dpdk_port_peer_left(struct dpdk_port *port)
{
	return port->linger_s > 0 && !dpdk_port_link_up(port);
}

void dpdk_port_mac(const struct dpdk_port *port, uint8_t mac[6])
{
	struct rte_ether_addr address = {0};

	rte_eth_macaddr_get(port->id, &address);
	memcpy(mac, address.addr_bytes, 6);
}
