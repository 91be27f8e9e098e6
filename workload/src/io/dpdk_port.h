/* SPDX-License-Identifier: BSD-3-Clause */
/* A DPDK port of an application: memory pools, queues. Everything that is not per frame. */
#ifndef ICBENCH_DPDK_PORT_H
#define ICBENCH_DPDK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

struct io_config;

struct dpdk_port {
	uint16_t id;
	double linger_s;           /* how long it lets its peer close first */
	bool started;              /* false only for a memif client whose server is not there yet */
	bool stocked;              /* whether its peer has had buffers to send into */
	uint16_t rx_ring, tx_ring; /* descriptors, after the driver's adjustment; a vhost back-end has the
	                              rings of its peer */
	uint16_t queues;           /* pairs */
	bool shares_pool;          /* rx_pool is not its own, and there is no tx_pool */
	uint32_t frame_bytes;      /* of the buffer, without FCS */
	uint64_t retry_cycles;     /* when to try to start again, TSC */
	uint64_t untagged; /* mbuf flag of a frame whose VLAN tag the driver took out; 0 if none was sent */
	const char *driver;
	struct rte_mempool *rx_pool, *tx_pool;
};

/* Sets the port up, with pools of its own, or all frames from a shared one. False, and a sentence in err, if
 * that fails; nothing is left open then. EAL runs. */
bool dpdk_port_open(struct dpdk_port *port, uint16_t id, struct rte_mempool *shared,
        const struct io_config *c, char *err, size_t err_len);
void dpdk_port_close(struct dpdk_port *port);

/* Buffers for frames of that length, without FCS; NULL and a sentence in err if memory is short. */
struct rte_mempool *dpdk_port_pool(
        const char *name, unsigned buffers, uint32_t frame_bytes, char *err, size_t err_len);
/* Buffers that a port needs beside those in its rings: lent to the application, in the pool's cache. */
unsigned dpdk_port_spare(const struct io_config *c);

/* Whether the peer is there. Starts a port that could not be started before. */
bool dpdk_port_link_up(struct dpdk_port *port);
/* Whether the peer of a memif port is gone. */
bool dpdk_port_peer_left(struct dpdk_port *port);
void dpdk_port_mac(const struct dpdk_port *port, uint8_t mac[6]);

#endif
