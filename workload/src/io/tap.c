/* SPDX-License-Identifier: BSD-3-Clause */
/* The character device of a macvtap link (/dev/tapN): whole frames, one for each read() and write(). */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/frame.h"
#include "io/sock.h"

struct io {
	struct sock sock;
	struct frame_match match;
};

static bool set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	/* By default each frame has a virtio header. */
	struct ifreq plain = {.ifr_flags = IFF_TAP | IFF_NO_PI};

	const uint32_t tags = c->role.any_frame ? FRAME_TAGS_BYTES : 0;
	int room = sock_buffer_bytes(c);

	if (!sock_init(s, c, c->packet_size - FRAME_FCS_BYTES + tags, err, err_len))
		return false;
	for (unsigned i = 0; i < s->tx.slots && !tags; i++)
		frame_write_headers(sock_tx_buffer(s, i), &c->ends, c->packet_size);
	s->fd = open(c->interface, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (s->fd >= 0 && ioctl(s->fd, TUNSETIFF, &plain) == 0 && ioctl(s->fd, TUNSETSNDBUF, &room) == 0)
		return true;
	snprintf(err, err_len, "no tap at %.60s: %s%s", c->interface, strerror(errno),
	        errno == EBUSY ? " (another program has opened it)" : "");
	return false;
}

static struct io *tap_open(const struct io_config *c, char *err, size_t err_len)
{
	struct io *io = sock_io_open(sizeof(*io), set_up, c, err, err_len);

	if (io)
		io->match = frame_match(&c->ends.header, io_heard_port(c));
	return io;
}

static void tap_facts(struct io *io, struct io_facts *facts)
{
	(void)io;
	facts->driver = "tap";
}

/* The link is in another namespace, and up as long as the device is there. */
static bool tap_link_up(struct io *io)
{
	(void)io;
	return true;
}

static unsigned tap_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	n = sock_tx_lend(&io->sock, payload, n);
	for (unsigned i = 0; i < n; i++)
		payload[i] += io->match.header_bytes;
	return n;
}

/* Returns how many frames were written, or -1. */
static int write_all(const struct io *io, const struct iovec *frames, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (write(io->sock.fd, frames[i].iov_base, frames[i].iov_len) < 0)
			return i || errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? (int)i : -1;
	return (int)n;
}

static int tap_tx_commit(struct io *io, unsigned n)
{
	struct sock_tx *tx = &io->sock.tx;
	int taken = write_all(io, tx->vectors + tx->head, n < tx->lent ? n : tx->lent);

	if (taken > 0)
		sock_tx_taken(tx, (unsigned)taken);
	return taken;
}

static int tap_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	const struct sock_rx *rx = &io->sock.rx;
	unsigned got = 0;

	for (n = n < rx->slots ? n : rx->slots; got < n; got++) {
		uint8_t *l2 = rx->vectors[got].iov_base;
		ssize_t length = read(io->sock.fd, l2, rx->capacity);
		struct io_frame *f = &frames[got];

		if (length < 0)
			return got || errno == EAGAIN || errno == EINTR ? (int)got : -1;
		io->sock.rx.messages[got].msg_len = (unsigned)length;
		f->l2 = l2;
		f->l2_len = (uint16_t)length;
		f->frame_len = (uint16_t)(length + FRAME_FCS_BYTES);
		f->payload = frame_parse(l2, (uint32_t)length, &io->match, &f->payload_len);
	}
	return (int)got;
}

static int tap_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	const struct sock_rx *rx = &io->sock.rx;
	struct iovec answers[IO_BURST_MAX];
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!keep[i])
			continue;
		frame_reflect(rx->vectors[i].iov_base, &io->match.header);
		answers[m++] = (struct iovec){rx->vectors[i].iov_base, rx->messages[i].msg_len};
	}
	return write_all(io, answers, m);
}

const struct io_ops io_tap = {
        .name = "tap",
        .sees_l2 = true,
        .open = tap_open,
        .close = sock_io_close,
        .facts = tap_facts,
        .link_up = tap_link_up,
        .tx_acquire = tap_tx_acquire,
        .tx_commit = tap_tx_commit,
        .rx_poll = tap_rx_poll,
        .rx_release = sock_io_rx_release,
        .wait = sock_io_wait,
        .rx_reflect = tap_rx_reflect,
        .tx_resize = sock_io_tx_resize,
};
