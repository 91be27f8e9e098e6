/* SPDX-License-Identifier: BSD-3-Clause */
/* The one DPDK port of an application: EAL, memory pools, queues. Everything that is not per frame. */
#ifndef ICBENCH_DPDK_PORT_H
#define ICBENCH_DPDK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

struct options;

struct dpdk_port {
	uint16_t id;
	double linger_s;           /* how long it lets its peer close first */
	bool started;              /* false only for a memif client whose server is not there yet */
	uint16_t rx_ring, tx_ring; /* descriptors, after the driver's adjustment; a vhost back-end has the
	                              rings of its peer */
	uint32_t frame_bytes;      /* of the buffer, without FCS */
	uint64_t retry_cycles;     /* when to try to start again, TSC */
	const char *driver;
	struct rte_mempool *rx_pool, *tx_pool;
};

/* Starts EAL and sets the port up. False, and a sentence in err, if that fails; nothing is left open then. */
bool dpdk_port_open(struct dpdk_port *port, const struct options *o, int eal_argc, char **eal_argv, char *err,
        size_t err_len);
void dpdk_port_close(struct dpdk_port *port);

/* Whether the peer is there. Starts a port that could not be started before. */
bool dpdk_port_link_up(struct dpdk_port *port);
/* Whether the peer of a memif port is gone. */
bool dpdk_port_peer_left(struct dpdk_port *port);
void dpdk_port_mac(const struct dpdk_port *port, uint8_t mac[6]);

#endif
