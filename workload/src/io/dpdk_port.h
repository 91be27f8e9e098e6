/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK port of an application: memory pools and queues, everything that is not per frame. */
#ifndef ICBENCH_DPDK_PORT_H
#define ICBENCH_DPDK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

struct io_config;

struct dpdk_port {
	uint16_t id;
	double linger_s;           /* how long it waits for its peer to close first */
	bool started;              /* false only for a memif client without its server */
	bool stocked;              /* its peer has got buffers to send into */
	uint16_t rx_ring, tx_ring; /* descriptors, as adjusted by the driver; a vhost back end has the rings
	                              of its peer */
	uint16_t queues;           /* pairs */
	int wakes;             /* epoll instance with the interrupts of its receive queues; -1: it polls */
	bool armed;            /* these interrupts are enabled */
	bool shares_pool;      /* rx_pool belongs to all ports, and there is no tx_pool */
	uint32_t frame_bytes;  /* of the buffer, without FCS */
	uint64_t retry_cycles; /* when to retry the start, TSC */
	uint64_t untagged; /* mbuf flag of a frame whose VLAN tag the driver has stripped; 0 if tags are not
	                      ours */
	const char *driver;
	struct rte_mempool *rx_pool, *tx_pool;
};

/* Opens a port with its own pools, or with all frames from a shared pool. EAL must have been started. Returns
 * false and a sentence in err on failure, with everything closed. */
bool dpdk_port_open(struct dpdk_port *port, uint16_t id, struct rte_mempool *shared,
        const struct io_config *c, char *err, size_t err_len);
void dpdk_port_close(struct dpdk_port *port);

/* Creates buffers for frames of that length without FCS. Returns NULL and a sentence in err if memory is
 * short. */
struct rte_mempool *dpdk_port_pool(
        const char *name, unsigned buffers, uint32_t frame_bytes, char *err, size_t err_len);
/* Returns the buffers that a port needs in addition to its rings: those lent to the application and those in
 * the pool's cache. */
unsigned dpdk_port_spare(const struct io_config *c);

/* Whether the peer is present. Retries the start of a port that could not start before. */
bool dpdk_port_link_up(struct dpdk_port *port);
/* Whether the peer of a memif port has left. */
bool dpdk_port_peer_left(struct dpdk_port *port);
/* Sleeps until a frame has arrived at one of the ports, for at most that many nanoseconds. Frames that
 * arrived before the interrupts were enabled raise none, so the first call enables them and returns: poll and
 * call again. */
void dpdk_port_wait(struct dpdk_port *ports, unsigned n, uint64_t ns);
void dpdk_port_mac(const struct dpdk_port *port, uint8_t mac[6]);

#endif
