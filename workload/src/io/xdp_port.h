/* SPDX-License-Identifier: BSD-3-Clause */
/* An AF_XDP socket on one queue of an interface, with the memory that it shares with the kernel.
 *
 * The memory consists of chunks of one frame each, those for sending first.
 */
#ifndef ICBENCH_XDP_PORT_H
#define ICBENCH_XDP_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xdp/xsk.h>

#include "io/sock.h"
#include "io/xdp_filter.h"

struct xdp_port {
	struct sock control; /* for queries that need an ordinary socket */
	struct xdp_filter filter;
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	int fd;
	bool zero_copy;
	uint32_t frame_bytes, chunk_bytes, tx_chunks, rx_chunks, tx_ring;
	uint8_t *memory;
	uint64_t *free; /* free chunks for sending */
	unsigned free_count;
};

/* Opens the socket on the configured interface, with headers in all chunks for sending. Returns false and a
 * sentence in err on failure. */
bool xdp_port_open(struct xdp_port *p, const struct io_config *c, char *err, size_t err_len);

/* Closes whatever is open. */
void xdp_port_close(struct xdp_port *p);

#endif
