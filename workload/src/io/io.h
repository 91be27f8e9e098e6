/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of a back end: how frames leave and arrive, a burst at a time (struct io_ops), and the part
 * of the command line that a back end sees (struct io_config).
 *
 * A back end lends its own buffers, because DPDK owns its mbufs and a UDP socket shows no link layer. It
 * writes the constant headers into its buffers once. The application writes the stamp (frame.h) of each
 * payload, and the whole payload only with --check-payload.
 */
#ifndef ICBENCH_IO_H
#define ICBENCH_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/acl.h"
#include "base/flow_pattern.h"
#include "base/frame.h"

/* Frames of one burst. */
#define IO_BURST_MAX 1024u
/* Queue pairs of a port. */
#define IO_QUEUES_MAX 16u
/* Ports of one forwarder. */
#define IO_PORTS_MAX 32u

/* How an endpoint learns of frames and of room for them. */
enum io_wait {
	IO_WAIT_POLL,      /* asks again and again */
	IO_WAIT_INTERRUPT, /* sleeps until the port wakes it */
	IO_WAIT_ADAPTIVE,  /* polls for a while after the latest frame, then sleeps */
};

/* What a sleeping endpoint waits for (io_ops.wait). */
enum io_event {
	IO_RX = 1 << 0, /* a frame has arrived */
	IO_TX = 1 << 1, /* a port that was full has room */
};

/* How long an endpoint sleeps if nothing reports room in a full port, in ns. */
#define IO_FULL_NS UINT64_C(20000)

/* What the application does with its port. */
struct io_role {
	bool sends;      /* offers frames unasked */
	bool receives;   /* looks at frames that arrive */
	bool round_trip; /* waits for answers, or answers */
	bool duplex;     /* sends and receives at once, as its peer does */
	bool forwards;   /* sends what it receives on another port */
	bool any_frame;  /* frames of any kind, not only ours */
};

/* How long a run lasts and how it is divided, for io_null, which makes the frames of a receiver. */
struct io_schedule {
	double warmup_s, window_s, duration_s;
	uint64_t count;
};

struct io_config {
	struct frame_ends ends;
	uint32_t packet_size;         /* bytes, with FCS; of the longest frame */
	struct flow_pattern pattern;  /* sizes and flows */
	struct pattern_routes routes; /* those that its frames take */
	struct acl acl;               /* of the frames that it sends */
	struct acl peer_acl;          /* of the frames that it counts */
	uint16_t stream_id;
	uint16_t peer_stream; /* the stream to count; 0: the same */
	bool check_payload;   /* writes and checks every byte of a payload */
	bool mmsg, blocking;  /* how a socket is called */
	enum io_wait wait;
	uint32_t burst, ring, queues;
	const char *interface;                /* of a port with a kernel interface */
	const char *interfaces[IO_PORTS_MAX]; /* of a forwarder */
	uint32_t interface_count;             /* as many as were named, even if more than the array holds */
	const char *await_socket;             /* of a DPDK port's virtual device */
	int eal_argc;                         /* what stood after "--" */
	char **eal_argv;
	struct io_role role;
	struct io_schedule schedule;
};

static inline uint16_t io_counted_stream(const struct io_config *c)
{
	return c->peer_stream ? c->peer_stream : c->stream_id;
}

/* The port to which a frame must be addressed to be received; 0 is any, because a frame that an ACL should
 * have dropped may have any port. */
static inline uint16_t io_heard_port(const struct io_config *c)
{
	return c->peer_acl.port ? 0 : c->ends.udp_port;
}

struct io;

/* A received frame, on loan until rx_release(). */
struct io_frame {
	uint8_t *l2;      /* Ethernet header, NULL if the back end does not show it */
	uint8_t *payload; /* first byte after UDP or TCP, NULL if the frame has not our headers and port */
	uint16_t payload_len;
	uint16_t frame_len; /* Ethernet frame with FCS */
	uint16_t l2_len;    /* bytes present at l2; less than the frame without FCS if it was truncated */
};

/* Facts of an open port, for the hello line. */
struct io_facts {
	const char *driver; /* PMD name, NULL for sockets */
	uint8_t mac[6];
	uint32_t ring; /* the size that the port accepted */
};

struct io_ops {
	const char *name; /* in the hello line */
	/* Whether the headers stand directly before a payload lent by tx_acquire(). The application then
	 * writes the UDP or TCP checksum there if one is required (prepare_checksum()). */
	bool sees_l2;

	/* Opens the port. A serving socket exists when this returns; the peer need not be there. Returns NULL
	 * and a sentence in err on failure. The port keeps the config. */
	struct io *(*open)(const struct io_config *c, char *err, size_t err_len);
	void (*close)(struct io *io);
	void (*facts)(struct io *io, struct io_facts *facts);
	bool (*link_up)(struct io *io);
	/* Whether the peer has left for good and the port's memory is gone; NULL if that cannot happen. */
	bool (*peer_left)(struct io *io);

	/* Lends up to n transmit payloads. Frames that are already lent and not yet taken come first, so that
	 * a partly refused burst can be offered again. Returns how many: fewer than n only if the pool is
	 * empty. */
	unsigned (*tx_acquire)(struct io *io, uint8_t *payload[], unsigned n);
	/* Offers the first n lent frames. Returns how many were taken, or -1 with errno on an error other
	 * than "full". The rest stay lent. */
	int (*tx_commit)(struct io *io, unsigned n);

	/* Returns up to n frames that have arrived, or -1 with errno; blocks only with --blocking. All of
	 * them are released by rx_release() before the next rx_poll(). */
	int (*rx_poll)(struct io *io, struct io_frame *frames, unsigned n);
	void (*rx_release)(struct io *io);
	/* Sleeps until one of the events, for at most that many nanoseconds; can return early. Called after a
	 * poll without frames, and only if --wait asks for it. NULL if nothing wakes an endpoint of this
	 * port. */
	void (*wait)(struct io *io, unsigned events, uint64_t ns);
	/* Sends each frame of the last rx_poll() whose keep[i] is set back to its sender, with swapped
	 * addresses and in place where possible, and releases all frames. Returns how many were taken. */
	int (*rx_reflect)(struct io *io, const bool *keep, unsigned n);

	/* Sets the length of the i-th lent frame: bytes without FCS, from the Ethernet header, which stands
	 * (or would stand) frame_header_bytes() before the payload. At most the packet size and two VLAN
	 * tags. A caller that uses it calls it for every frame. NULL if frames have no length. */
	void (*tx_resize)(struct io *io, unsigned i, uint32_t bytes);
	/* Sends what tx_commit() took but could not place yet; NULL if nothing is held back. Called while no
	 * burst is due; the other calls flush as well. */
	void (*tx_flush)(struct io *io);
	/* Returns the number of queue pairs, and the measuring frames of each so far; NULL with one queue. */
	unsigned (*queue_counts)(struct io *io, const uint64_t **sent, const uint64_t **received);
	/* Returns the frames that reached the port and were lost before rx_poll(), for frames of any kind;
	 * NULL if that is unknown. */
	uint64_t (*missed)(struct io *io);
};

#endif
