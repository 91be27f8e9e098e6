/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of a forwarder's back end: several ports, and frames that can be kept for any time.
 *
 * A frame is a handle of the back end (an mbuf, a buffer), moved from port to port without a copy. Calls are
 * per burst, as in io/io.h. The content of a frame is read only if the forwarder asks for its bytes.
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
	uint32_t ring; /* the size that the port accepted */
	bool link_up;
};

struct forward_ops {
	const char *name;
	/* Opens all ports; their peers need not be present. `kept` is the number of frames that the forwarder
	 * may keep for each receiving port, in addition to the current burst. Returns NULL and a sentence in
	 * err on failure. */
	struct forward_io *(*open)(const struct io_config *c, uint32_t kept, char *err, size_t err_len);
	void (*close)(struct forward_io *io);
	unsigned (*ports)(const struct forward_io *io);
	void (*facts)(struct forward_io *io, unsigned port, struct forward_port_facts *facts);
	/* Returns the frames that reached the port and were lost before rx(). */
	uint64_t (*missed)(struct forward_io *io, unsigned port);

	/* Returns up to n frames that have arrived, or -1 with errno; never blocks. */
	int (*rx)(struct forward_io *io, unsigned port, void *frames[], unsigned n);
	/* Sleeps until a frame has arrived at any port, for at most that many nanoseconds; can return early.
	 */
	void (*wait)(struct forward_io *io, uint64_t ns);
	/* Takes all n frames and sends them in order; releases those for which the port has no room. Returns
	 * how many it sent, or -1 with errno on an error other than "full". */
	int (*tx)(struct forward_io *io, unsigned port, void *frames[], unsigned n);
	void (*release)(struct forward_io *io, void *frames[], unsigned n);
	/* Adds a reference: the frame can be sent and released once more. */
	void (*share)(void *frame);
	/* Returns the first byte of the Ethernet header. *length counts from there, without FCS. */
	uint8_t *(*bytes)(void *frame, uint32_t *length);
};

extern const struct forward_ops forward_raw;
#ifdef HAVE_DPDK
extern const struct forward_ops forward_dpdk;
#endif

#endif
