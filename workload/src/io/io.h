/* SPDX-License-Identifier: BSD-3-Clause */
/* How frames enter and leave: one struct io_ops per backend (UDP, raw, DPDK, null).
 *
 * The seam is a burst, and backends lend their buffers: DPDK owns mbufs, UDP shows no L2 header.
 * A backend writes the constant headers into its buffers once; an application touches the
 * instrumentation header (frame.h) of each payload, and all of it only with --touch.
 */
#ifndef ICBENCH_IO_H
#define ICBENCH_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "option/options.h"

struct io;

/* A received frame on loan until rx_release(). */
struct io_frame {
	uint8_t *l2;      /* Ethernet header, NULL where the backend does not show it */
	uint8_t *payload; /* first byte after UDP or TCP, or NULL if this has not our headers and port */
	uint16_t payload_len;
	uint16_t frame_len; /* Ethernet frame with FCS */
	uint16_t l2_len;    /* bytes there are at l2; a frame without FCS can be longer and is cut then */
};

/* Facts of an open port, for the hello line. */
struct io_facts {
	const char *driver; /* PMD name, NULL for sockets */
	uint8_t mac[6];
	uint32_t ring; /* what the port really took */
};

struct io_ops {
	const char *name;
	/* Whether a payload lent by tx_acquire() has its frame's headers right in front of it. The
	 * application then writes the UDP or TCP checksum there itself, where one is due (dress_seal()). */
	bool sees_l2;

	/* Sets the port up (for a serving socket: it exists when this returns; the peer need not be there).
	 * Returns NULL and a sentence in err on failure. eal_argc/eal_argv: what stood behind "--". */
	struct io *(*open)(const struct options *o, int eal_argc, char **eal_argv, char *err, size_t err_len);
	void (*close)(struct io *io);
	void (*facts)(struct io *io, struct io_facts *facts);
	bool (*link_up)(struct io *io);
	/* Whether the peer has left for good and took the port's memory along; NULL where none can. */
	bool (*peer_left)(struct io *io);

	/* Lends up to n transmit payloads; frames already lent and not yet taken come first, so that a
	 * partly refused burst can be offered again. Returns how many (fewer only when the pool is dry). */
	unsigned (*tx_acquire)(struct io *io, uint8_t *payload[], unsigned n);
	/* Offers the first n lent frames. Returns how many were taken, or -1 with errno for an error
	 * other than "full". The rest stay lent. */
	int (*tx_commit)(struct io *io, unsigned n);

	/* Up to n frames that have arrived; never blocks unless --blocking. All of them are released
	 * with rx_release() before the next rx_poll(). -1 with errno on error. */
	int (*rx_poll)(struct io *io, struct io_frame *frames, unsigned n);
	void (*rx_release)(struct io *io);
	/* Sends those of the frames lent by the last rx_poll() whose keep[i] is set back to where they
	 * came from (addresses swapped, in place where possible) and releases all. Returns how many were
	 * taken. */
	int (*rx_reflect)(struct io *io, const bool *keep, unsigned n);

	/* Gives the i-th lent frame a length of its own, counted without FCS from its Ethernet header, which
	 * stands (or would stand) frame_header_bytes() before its payload. At most the packet size, and two
	 * VLAN tags. Who calls it calls it for each frame. NULL where frames have no length. */
	void (*tx_resize)(struct io *io, unsigned i, uint32_t bytes);
	/* Sends what tx_commit() took and keeps for want of room; NULL where it keeps nothing. It is called
	 * while nothing is due; other calls do it too. */
	void (*tx_flush)(struct io *io);
	/* Returns how many queue pairs there are, and measuring frames by queue so far; NULL where there is
	 * one. */
	unsigned (*queue_counts)(struct io *io, const uint64_t **sent, const uint64_t **received);
	/* For frames of any kind (replay, capture); NULL where a backend cannot tell. Frames that came to the
	 * port so far and were lost before rx_poll() could have them. */
	uint64_t (*missed)(struct io *io);
};

/* io_any is io_raw for frames of any kind. */
extern const struct io_ops io_udp, io_gso, io_raw, io_any, io_null;
#ifdef HAVE_XDP
extern const struct io_ops io_xdp;
#endif
#ifdef HAVE_DPDK
extern const struct io_ops io_dpdk;
/* The same with several queue pairs (--queues). */
const struct io_ops *io_dpdk_queues(void);
/* DPDK's version, as it calls itself. */
const char *io_dpdk_version(void);
#endif

#endif
