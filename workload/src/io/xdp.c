/* SPDX-License-Identifier: BSD-3-Clause */
/* AF_XDP sockets: whole frames through rings shared with the kernel, past its network stack.
 *
 * The memory shared with the kernel holds chunks of one frame each, those for sending first. A received frame
 * that is reflected is sent from its own chunk, which comes back by the completion ring as any other does.
 */
#include "io/io.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "base/frame.h"
#include "io/sock.h"
#include "io/xdp_filter.h"
#include "option/options.h"

#ifndef XDP_OPTIONS_ZEROCOPY
#define XDP_OPTIONS_ZEROCOPY (1 << 0)
#endif

/* The kernel takes a power of two, of a page at most, and keeps this much in front of a received frame. */
#define CHUNK_BYTES 2048u
#define CHUNK_BYTES_MAX 4096u
#define HEADROOM_BYTES 256u
/* A receiver that is off its CPU for a moment loses nothing. */
#define RX_CHUNKS_MIN 2048u
#define QUEUE 0u
/* A blocking call returns after this long, to look for a stop. */
#define BLOCK_MS 50

struct io {
	struct sock control; /* for what only an ordinary socket can be asked */
	struct xdp_filter filter;
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	int fd;
	bool blocking, zero_copy;
	uint16_t udp_port;
	uint32_t frame_bytes, chunk_bytes, tx_chunks, rx_chunks, tx_ring;
	uint8_t *memory;
	uint64_t *free; /* chunks for sending that nobody holds */
	unsigned free_count, lent, received;
	struct xdp_desc lent_frames[IO_BURST_MAX];
	struct xdp_desc frames[IO_BURST_MAX]; /* on loan to the application */
};

static size_t memory_bytes(const struct io *io)
{
	return (size_t)(io->tx_chunks + io->rx_chunks) * io->chunk_bytes;
}

static uint32_t power_of_two(uint32_t least)
{
	uint32_t n = 1;

	while (n < least)
		n *= 2;
	return n;
}

static bool choose_sizes(struct io *io, const struct options *o, char *err, size_t err_len)
{
	io->frame_bytes = o->packet_size - FRAME_FCS_BYTES;
	io->chunk_bytes = io->frame_bytes + HEADROOM_BYTES <= CHUNK_BYTES ? CHUNK_BYTES : CHUNK_BYTES_MAX;
	io->tx_ring = power_of_two(o->ring > o->burst ? o->ring : o->burst);
	io->tx_chunks = 2 * io->tx_ring;
	io->rx_chunks = power_of_two(o->ring > RX_CHUNKS_MIN ? o->ring : RX_CHUNKS_MIN);
	if (io->frame_bytes + HEADROOM_BYTES <= io->chunk_bytes)
		return true;
	snprintf(err, err_len, "packet size %u is more than AF_XDP has in one piece: send at most %u bytes",
	        o->packet_size, CHUNK_BYTES_MAX - HEADROOM_BYTES + FRAME_FCS_BYTES);
	return false;
}

/* An ordinary socket on the interface, whose frames fit. */
static bool open_control(struct io *io, const struct options *o, char *err, size_t err_len)
{
	struct sock *s = &io->control;

	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		snprintf(err, err_len, "no UDP socket: %s", strerror(errno));
		return false;
	}
	if (!if_nametoindex(o->xdp_interface)) {
		snprintf(err, err_len, "there is no interface '%.60s' here", o->xdp_interface);
		return false;
	}
	snprintf(s->interface, sizeof(s->interface), "%s", o->xdp_interface);
	return sock_check_mtu(s->fd, s->interface, o, err, err_len);
}

/* An AF_XDP socket hears one queue: on an interface with several it would miss most frames. */
static bool has_one_queue(const struct io *io, char *err, size_t err_len)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request = {.ifr_data = (char *)&channels};
	uint32_t queues;

	memcpy(request.ifr_name, io->control.interface, sizeof(request.ifr_name));
	if (ioctl(io->control.fd, SIOCETHTOOL, &request) < 0)
		return true;
	queues = channels.combined_count + channels.rx_count;
	if (queues <= 1)
		return true;
	snprintf(err, err_len,
	        "%.60s has %u receive queues, and an AF_XDP socket hears one: ethtool -L %.60s combined 1",
	        io->control.interface, queues, io->control.interface);
	return false;
}

static void explain_memory(const struct io *io, int error, char *err, size_t err_len)
{
	size_t kib = memory_bytes(io) / 1024;
	struct rlimit limit;

	if (error == EAFNOSUPPORT || error == EPROTONOSUPPORT)
		snprintf(err, err_len,
		        "this kernel has no AF_XDP sockets: use one with CONFIG_XDP_SOCKETS, or -R instead");
	else if (error == ENOBUFS && getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		snprintf(err, err_len,
		        "AF_XDP needs %zu KiB of locked memory and the limit is %llu KiB: raise it (ulimit "
		        "-l), give CAP_IPC_LOCK, or take a smaller --ring",
		        kib, (unsigned long long)limit.rlim_cur / 1024);
	else if (error == EPERM)
		snprintf(err, err_len, "no AF_XDP socket: %s (it needs CAP_NET_RAW)", strerror(error));
	else
		snprintf(err, err_len, "no AF_XDP memory of %zu KiB: %s", kib, strerror(error));
}

static bool share_memory(struct io *io, char *err, size_t err_len)
{
	const struct xsk_umem_config config = {
	        .fill_size = io->rx_chunks, .comp_size = io->tx_ring, .frame_size = io->chunk_bytes};
	void *memory = mmap(NULL, memory_bytes(io), PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int error;

	if (memory == MAP_FAILED) {
		explain_memory(io, errno, err, err_len);
		return false;
	}
	io->memory = memory;
	error = xsk_umem__create(&io->umem, memory, memory_bytes(io), &io->fill, &io->completion, &config);
	if (error)
		explain_memory(io, -error, err, err_len);
	return !error;
}

/* Zero copy where the driver has it: the kernel decides, and says so. */
static bool open_socket(struct io *io, char *err, size_t err_len)
{
	const struct xsk_socket_config config = {
	        .rx_size = io->rx_chunks,
	        .tx_size = io->tx_ring,
	        .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
	        .bind_flags = XDP_USE_NEED_WAKEUP,
	};
	const char *interface = io->control.interface;
	struct xdp_options taken = {0};
	socklen_t length = sizeof(taken);
	int error = -xsk_socket__create(&io->xsk, interface, QUEUE, io->umem, &io->rx, &io->tx, &config);

	if (!error) {
		io->fd = xsk_socket__fd(io->xsk);
		if (getsockopt(io->fd, SOL_XDP, XDP_OPTIONS, &taken, &length) == 0)
			io->zero_copy = taken.flags & XDP_OPTIONS_ZEROCOPY;
		if (xdp_filter_set(&io->filter, QUEUE, io->fd))
			return true;
		error = errno;
	}
	if (error == EBUSY)
		snprintf(err, err_len,
		        "queue %u of %.60s is held by another AF_XDP socket: end the program that uses it",
		        QUEUE, interface);
	else
		snprintf(err, err_len, "no AF_XDP socket on queue %u of %.60s: %s", QUEUE, interface,
		        strerror(error));
	return false;
}

/* Chunks for sending get their headers and wait on the stack; all others wait for frames in the fill ring. */
static bool hand_out_chunks(struct io *io, const struct options *o, char *err, size_t err_len)
{
	uint32_t at = 0;

	io->free = calloc(io->tx_chunks, sizeof(*io->free));
	if (!io->free) {
		snprintf(err, err_len, "out of memory");
		return false;
	}
	for (; io->free_count < io->tx_chunks; io->free_count++) {
		io->free[io->free_count] = (uint64_t)io->free_count * io->chunk_bytes;
		frame_write_headers(io->memory + io->free[io->free_count], &o->ends, o->packet_size);
	}
	xsk_ring_prod__reserve(&io->fill, io->rx_chunks, &at);
	for (uint32_t i = 0; i < io->rx_chunks; i++)
		*xsk_ring_prod__fill_addr(&io->fill, at + i) =
		        (uint64_t)(io->tx_chunks + i) * io->chunk_bytes;
	xsk_ring_prod__submit(&io->fill, io->rx_chunks);
	return true;
}

static void xdp_close(struct io *io)
{
	xdp_filter_close(&io->filter);
	if (io->xsk)
		xsk_socket__delete(io->xsk);
	if (io->umem)
		xsk_umem__delete(io->umem);
	if (io->memory)
		munmap(io->memory, memory_bytes(io));
	if (io->control.fd >= 0)
		close(io->control.fd);
	free(io->free);
	free(io);
}

static struct io *xdp_open(const struct options *o, int eal_argc, char **eal_argv, char *err, size_t err_len)
{
	struct io *io = calloc(1, sizeof(*io));

	(void)eal_argc;
	(void)eal_argv;
	if (!io) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	io->filter = (struct xdp_filter){-1, -1, -1, false};
	io->control.fd = -1;
	io->blocking = o->blocking;
	io->udp_port = o->ends.udp_port;
	if (choose_sizes(io, o, err, err_len) && open_control(io, o, err, err_len) &&
	        has_one_queue(io, err, err_len) && share_memory(io, err, err_len) &&
	        xdp_filter_open(&io->filter, o->xdp_interface, io->udp_port, err, err_len) &&
	        hand_out_chunks(io, o, err, err_len) && open_socket(io, err, err_len))
		return io;
	xdp_close(io);
	return NULL;
}

static void xdp_facts(struct io *io, struct io_facts *facts)
{
	facts->driver = io->zero_copy       ? "AF_XDP zero copy"
	                : io->filter.native ? "AF_XDP copy"
	                                    : "AF_XDP generic";
	facts->ring = io->rx_chunks;
}

static bool xdp_link_up(struct io *io)
{
	return sock_link_up(&io->control);
}

static void give_back_to_fill(struct io *io, uint64_t address)
{
	uint32_t at;

	/* As many places as there are such chunks: there is always one. */
	if (xsk_ring_prod__reserve(&io->fill, 1, &at) == 1) {
		*xsk_ring_prod__fill_addr(&io->fill, at) = address - address % io->chunk_bytes;
		xsk_ring_prod__submit(&io->fill, 1);
	}
}

/* Takes back the chunks that have been sent. */
static void reclaim(struct io *io)
{
	uint32_t at, n = xsk_ring_cons__peek(&io->completion, io->tx_ring, &at);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t address = *xsk_ring_cons__comp_addr(&io->completion, at + i);

		if (address < (uint64_t)io->tx_chunks * io->chunk_bytes)
			io->free[io->free_count++] = address - address % io->chunk_bytes;
		else
			give_back_to_fill(io, address);
	}
	if (n)
		xsk_ring_cons__release(&io->completion, n);
}

static uint32_t unsent(const struct io *io)
{
	return *io->tx.producer - __atomic_load_n(io->tx.consumer, __ATOMIC_ACQUIRE);
}

/* Has the kernel send what is in the ring. A call sends only so many frames, so it is repeated while it gets
 * on. EBUSY says that a frame has been dropped on the way, which is what the receiver's accounts tell. False
 * with errno. */
static bool kick(struct io *io)
{
	uint32_t before;

	if (!xsk_ring_prod__needs_wakeup(&io->tx))
		return true;
	do {
		before = unsent(io);
		if (!before || sendto(io->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
			return true;
		if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != EINTR)
			return false;
	} while (unsent(io) != before);
	return true;
}

static void wait_until(const struct io *io, short event)
{
	struct pollfd ready = {.fd = io->fd, .events = event};

	poll(&ready, 1, BLOCK_MS);
}

static unsigned xdp_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	reclaim(io);
	while (io->lent < n && io->free_count)
		io->lent_frames[io->lent++] =
		        (struct xdp_desc){.addr = io->free[--io->free_count], .len = io->frame_bytes};
	n = n < io->lent ? n : io->lent;
	for (unsigned i = 0; i < n; i++)
		payload[i] = io->memory + io->lent_frames[i].addr + FRAME_HEADER_BYTES;
	return n;
}

/* Room for up to n frames in the ring; waits for some if it may. */
static unsigned room(struct io *io, unsigned n)
{
	unsigned places = xsk_prod_nb_free(&io->tx, n);

	if (!places && io->blocking) {
		wait_until(io, POLLOUT);
		places = xsk_prod_nb_free(&io->tx, n);
	}
	return places < n ? places : n;
}

static void xdp_tx_resize(struct io *io, unsigned i, uint32_t bytes)
{
	io->lent_frames[i].len = bytes;
}

static int xdp_tx_commit(struct io *io, unsigned n)
{
	uint32_t at = 0;

	n = room(io, n);
	if (n) {
		xsk_ring_prod__reserve(&io->tx, n, &at);
		for (unsigned i = 0; i < n; i++)
			*xsk_ring_prod__tx_desc(&io->tx, at + i) = io->lent_frames[i];
		xsk_ring_prod__submit(&io->tx, n);
		io->lent -= n;
		memmove(io->lent_frames, io->lent_frames + n, io->lent * sizeof(io->lent_frames[0]));
	}
	return kick(io) ? (int)n : -1;
}

static int xdp_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	uint32_t at;

	if (!io->blocking && unsent(io) && !kick(io))
		return -1;
	io->received = xsk_ring_cons__peek(&io->rx, n, &at);
	if (!io->received) {
		if (xsk_ring_prod__needs_wakeup(&io->fill))
			recvfrom(io->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		if (io->blocking)
			wait_until(io, POLLIN);
		return 0;
	}
	for (unsigned i = 0; i < io->received; i++)
		io->frames[i] = *xsk_ring_cons__rx_desc(&io->rx, at + i);
	xsk_ring_cons__release(&io->rx, io->received);
	for (unsigned i = 0; i < io->received; i++) {
		struct io_frame *f = &frames[i];

		f->l2 = io->memory + io->frames[i].addr;
		f->l2_len = (uint16_t)io->frames[i].len;
		f->frame_len = (uint16_t)(io->frames[i].len + FRAME_FCS_BYTES);
		f->payload = frame_parse(f->l2, io->frames[i].len, io->udp_port, &f->payload_len);
	}
	return (int)io->received;
}

static void xdp_rx_release(struct io *io)
{
	for (unsigned i = 0; i < io->received; i++)
		give_back_to_fill(io, io->frames[i].addr);
	io->received = 0;
}

static int xdp_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	unsigned kept = 0, sent = 0, places;
	uint32_t at = 0;

	reclaim(io);
	for (unsigned i = 0; i < n; i++)
		kept += keep[i];
	places = room(io, kept);
	if (places)
		xsk_ring_prod__reserve(&io->tx, places, &at);
	for (unsigned i = 0; i < io->received; i++) {
		const struct xdp_desc *frame = &io->frames[i];

		if (i >= n || !keep[i] || sent == places) {
			give_back_to_fill(io, frame->addr);
			continue;
		}
		frame_reflect(io->memory + frame->addr);
		*xsk_ring_prod__tx_desc(&io->tx, at + sent++) = *frame;
	}
	io->received = 0;
	xsk_ring_prod__submit(&io->tx, sent);
	return kick(io) ? (int)sent : -1;
}

const struct io_ops io_xdp = {
        .name = "xdp",
        .sees_l2 = true,
        .open = xdp_open,
        .close = xdp_close,
        .facts = xdp_facts,
        .link_up = xdp_link_up,
        .tx_acquire = xdp_tx_acquire,
        .tx_commit = xdp_tx_commit,
        .rx_poll = xdp_rx_poll,
        .rx_release = xdp_rx_release,
        .rx_reflect = xdp_rx_reflect,
        .tx_resize = xdp_tx_resize,
};
