/* SPDX-License-Identifier: BSD-3-Clause */
/* An AF_XDP socket on one queue of an interface, with the memory that it shares with the kernel.
 *
 * The memory holds chunks of one frame each, those for sending first.
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
	struct sock control; /* for what only an ordinary socket can be asked */
	struct xdp_filter filter;
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	int fd;
	bool zero_copy;
	uint32_t frame_bytes, chunk_bytes, tx_chunks, rx_chunks, tx_ring;
	uint8_t *memory;
	uint64_t *free; /* chunks for sending that nobody holds */
	unsigned free_count;
};

/* Opens it on the interface of the options, with headers in all chunks for sending. False and a sentence on
 * failure. */
bool xdp_port_open(struct xdp_port *p, const struct io_config *c, char *err, size_t err_len);

/* Closes what is open of it. */
void xdp_port_close(struct xdp_port *p);

#endif
