/* SPDX-License-Identifier: BSD-3-Clause */
/* How a forwarder's frames enter and leave: several ports, and frames that are kept for as long as it takes.
 *
 * A frame is a handle of the backend's (an mbuf, a buffer of ours), moved from port to port without a copy.
 * Per burst as in io.h; nothing of a frame is looked at unless the forwarder asks for its bytes.
 */
#ifndef ICBENCH_FORWARD_IO_H
#define ICBENCH_FORWARD_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

struct forward_io;

struct forward_port_facts {
	const char *name;   /* interface or device */
	const char *driver; /* PMD name, NULL for sockets */
	uint8_t mac[6];
	uint32_t ring; /* what the port really took */
	bool link_up;
};

struct forward_ops {
	const char *name;
	/* Sets all ports up; their peers need not be there. `kept` is how many frames the forwarder may keep
	 * for each port they came from, beside the burst it is at. NULL and a sentence in err on failure. */
	struct forward_io *(*open)(const struct io_config *c, uint32_t kept, char *err, size_t err_len);
	void (*close)(struct forward_io *io);
	unsigned (*ports)(const struct forward_io *io);
	void (*facts)(struct forward_io *io, unsigned port, struct forward_port_facts *facts);
	/* Frames that came to the port and were lost before rx() could have them. */
	uint64_t (*missed)(struct forward_io *io, unsigned port);

	/* Up to n frames that have arrived; never blocks. -1 with errno on error. */
	int (*rx)(struct forward_io *io, unsigned port, void *frames[], unsigned n);
	/* Sends n frames in order and takes them all: those that the port has no room for are released.
	 * Returns how many it took, or -1 with errno for an error other than "full". */
	int (*tx)(struct forward_io *io, unsigned port, void *frames[], unsigned n);
	void (*release)(struct forward_io *io, void *frames[], unsigned n);
	/* One more reference: the frame can be sent and released once more. */
	void (*share)(void *frame);
	/* First byte of the Ethernet header; *length counts from there, without FCS. */
	uint8_t *(*bytes)(void *frame, uint32_t *length);
};

extern const struct forward_ops forward_raw;
#ifdef HAVE_DPDK
extern const struct forward_ops forward_dpdk;
#endif

#endif
