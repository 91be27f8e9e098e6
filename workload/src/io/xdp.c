/* SPDX-License-Identifier: BSD-3-Clause */
/* AF_XDP sockets: whole frames through rings shared with the kernel, bypassing its network stack.
 *
 * A reflected frame is sent from its own chunk, which returns through the completion ring like any other.
 */
#include "io/io.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/frame.h"
#include "io/xdp_port.h"

/* A blocking call returns after this time to check for a stop. */
#define BLOCK_MS 50
/* The longest wait, at the end, for frames that the kernel has not taken yet. */
#define DRAIN_MS 500

struct io {
	struct xdp_port port;
	bool blocking;
	struct frame_match match;
	unsigned lent, received;
	struct xdp_desc lent_frames[IO_BURST_MAX];
	struct xdp_desc frames[IO_BURST_MAX]; /* on loan to the application */
};

static void xdp_facts(struct io *io, struct io_facts *facts)
{
	facts->driver = io->port.zero_copy       ? "AF_XDP zero copy"
	                : io->port.filter.native ? "AF_XDP copy"
	                                         : "AF_XDP generic";
	facts->ring = io->port.rx_chunks;
}

static bool xdp_link_up(struct io *io)
{
	return sock_link_up(&io->port.control);
}

static void give_back_to_fill(struct io *io, uint64_t address)
{
	uint32_t at;

	/* The ring has as many places as there are such chunks, so one is always free. */
	if (xsk_ring_prod__reserve(&io->port.fill, 1, &at) == 1) {
		*xsk_ring_prod__fill_addr(&io->port.fill, at) = address - address % io->port.chunk_bytes;
		xsk_ring_prod__submit(&io->port.fill, 1);
	}
}

/* Reclaims the chunks that have been sent. */
static void reclaim(struct io *io)
{
	uint32_t at, n = xsk_ring_cons__peek(&io->port.completion, io->port.tx_ring, &at);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t address = *xsk_ring_cons__comp_addr(&io->port.completion, at + i);

		if (address < (uint64_t)io->port.tx_chunks * io->port.chunk_bytes)
			io->port.free[io->port.free_count++] = address - address % io->port.chunk_bytes;
		else
			give_back_to_fill(io, address);
	}
	if (n)
		xsk_ring_cons__release(&io->port.completion, n);
}

static uint32_t unsent(const struct io *io)
{
	return *io->port.tx.producer - __atomic_load_n(io->port.tx.consumer, __ATOMIC_ACQUIRE);
}

/* Makes the kernel send what is in the ring. A call sends a limited number of frames, so it is repeated while
 * it makes progress. EBUSY means that a frame was dropped on the path, which the receiver's accounts show.
 * Returns false with errno. */
static bool kick(struct io *io)
{
	uint32_t before;

	if (!xsk_ring_prod__needs_wakeup(&io->port.tx))
		return true;
	do {
		before = unsent(io);
		if (!before || sendto(io->port.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
			return true;
		if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != EINTR)
			return false;
	} while (unsent(io) != before);
	return true;
}

/* Sends what has been taken, such as an end mark: on a busy machine the kernel frees its places late. */
static void drain(struct io *io)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < DRAIN_MS && unsent(io); i++) {
		reclaim(io);
		if (!kick(io))
			return;
		nanosleep(&pause, NULL);
	}
}

static void xdp_close(struct io *io)
{
	drain(io);
	xdp_port_close(&io->port);
	free(io);
}

static struct io *xdp_open(const struct io_config *c, char *err, size_t err_len)
{
	struct io *io = calloc(1, sizeof(*io));

	if (!io) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	io->blocking = c->blocking;
	io->match = frame_match(&c->ends.header, io_heard_port(c));
	if (xdp_port_open(&io->port, c, err, err_len))
		return io;
	free(io);
	return NULL;
}

static void wait_until(const struct io *io, short event)
{
	struct pollfd ready = {.fd = io->port.fd, .events = event};

	poll(&ready, 1, BLOCK_MS);
}

static unsigned xdp_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	reclaim(io);
	while (io->lent < n && io->port.free_count)
		io->lent_frames[io->lent++] = (struct xdp_desc){
		        .addr = io->port.free[--io->port.free_count], .len = io->port.frame_bytes};
	n = n < io->lent ? n : io->lent;
	for (unsigned i = 0; i < n; i++)
		payload[i] = io->port.memory + io->lent_frames[i].addr + io->match.header_bytes;
	return n;
}

/* Returns the room in the ring for up to n frames; waits for some if blocking. */
static unsigned room(struct io *io, unsigned n)
{
	unsigned places = xsk_prod_nb_free(&io->port.tx, n);

	if (!places && io->blocking) {
		wait_until(io, POLLOUT);
		places = xsk_prod_nb_free(&io->port.tx, n);
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
		xsk_ring_prod__reserve(&io->port.tx, n, &at);
		for (unsigned i = 0; i < n; i++)
			*xsk_ring_prod__tx_desc(&io->port.tx, at + i) = io->lent_frames[i];
		xsk_ring_prod__submit(&io->port.tx, n);
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
	io->received = xsk_ring_cons__peek(&io->port.rx, n, &at);
	if (!io->received) {
		if (xsk_ring_prod__needs_wakeup(&io->port.fill))
			recvfrom(io->port.fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		if (io->blocking)
			wait_until(io, POLLIN);
		return 0;
	}
	for (unsigned i = 0; i < io->received; i++)
		io->frames[i] = *xsk_ring_cons__rx_desc(&io->port.rx, at + i);
	xsk_ring_cons__release(&io->port.rx, io->received);
	for (unsigned i = 0; i < io->received; i++) {
		struct io_frame *f = &frames[i];

		f->l2 = io->port.memory + io->frames[i].addr;
		f->l2_len = (uint16_t)io->frames[i].len;
		f->frame_len = (uint16_t)(io->frames[i].len + FRAME_FCS_BYTES);
		f->payload = frame_parse(f->l2, io->frames[i].len, &io->match, &f->payload_len);
	}
	return (int)io->received;
}

/* While frames wait for the kernel to send them, it has to be asked again. */
static void xdp_wait(struct io *io, unsigned events, uint64_t ns)
{
	sock_wait(io->port.fd, events, unsent(io) && ns > IO_FULL_NS ? IO_FULL_NS : ns);
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
		xsk_ring_prod__reserve(&io->port.tx, places, &at);
	for (unsigned i = 0; i < io->received; i++) {
		const struct xdp_desc *frame = &io->frames[i];

		if (i >= n || !keep[i] || sent == places) {
			give_back_to_fill(io, frame->addr);
			continue;
		}
		frame_reflect(io->port.memory + frame->addr, &io->match.header);
		*xsk_ring_prod__tx_desc(&io->port.tx, at + sent++) = *frame;
	}
	io->received = 0;
	xsk_ring_prod__submit(&io->port.tx, sent);
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
        .wait = xdp_wait,
        .tx_resize = xdp_tx_resize,
};
