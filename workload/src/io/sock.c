/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/sock.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/frame.h"

/* A blocking call returns after this time to check for a stop. */
#define BLOCK_US 50000
/* The kernel charges a small datagram with the memory it really uses, about 768 bytes. */
#define TRUESIZE_OVERHEAD 768u
#define BUFFER_MIN (4u << 20)
#define CACHE_LINE 64u

/* Buffers are an odd number of cache lines apart: at a power of two they would compete for the same cache
 * sets. */
static size_t stride_for(size_t length)
{
	size_t lines = (length + CACHE_LINE - 1) / CACHE_LINE;

	return (lines | 1) * CACHE_LINE;
}

static bool make_vectors(struct mmsghdr **messages, struct iovec **vectors, unsigned n)
{
	*messages = calloc(n, sizeof(**messages));
	*vectors = calloc(n, sizeof(**vectors));
	if (!*messages || !*vectors)
		return false;
	for (unsigned i = 0; i < n; i++) {
		(*messages)[i].msg_hdr.msg_iov = &(*vectors)[i];
		(*messages)[i].msg_hdr.msg_iovlen = 1;
	}
	return true;
}

static uint8_t *make_buffers(size_t stride, unsigned slots)
{
	uint8_t *buffers = aligned_alloc(CACHE_LINE, stride * slots);

	if (buffers)
		memset(buffers, 0, stride * slots);
	return buffers;
}

bool sock_init(struct sock *s, const struct io_config *c, size_t tx_length, char *err, size_t err_len)
{
	struct sock_tx *tx = &s->tx;
	struct sock_rx *rx = &s->rx;

	s->fd = -1;
	s->mmsg = c->mmsg;
	s->prompt = c->role.round_trip;
	s->flags = c->blocking ? 0 : MSG_DONTWAIT;
	tx->slots = rx->slots = c->burst;
	tx->length = tx_length;
	tx->stride = stride_for(tx_length);
	rx->capacity = tx_length > 2048 ? tx_length : 2048; /* foreign frames may be longer than ours */
	rx->stride = stride_for(rx->capacity);
	tx->buffers = make_buffers(tx->stride, tx->slots);
	rx->buffers = make_buffers(rx->stride, rx->slots);
	if (!tx->buffers || !rx->buffers || !make_vectors(&tx->messages, &tx->vectors, 2 * tx->slots) ||
	        !make_vectors(&rx->messages, &rx->vectors, rx->slots)) {
		snprintf(err, err_len, "out of memory for %u frames", c->burst);
		return false;
	}
	for (unsigned i = 0; i < tx->slots; i++)
		tx->vectors[i] = tx->vectors[i + tx->slots] = (struct iovec){sock_tx_buffer(s, i), tx_length};
	for (unsigned i = 0; i < rx->slots; i++)
		rx->vectors[i] = (struct iovec){rx->buffers + i * rx->stride, rx->capacity};
	return true;
}

void sock_rx_leave_room(struct sock_rx *rx, uint32_t bytes)
{
	rx->capacity -= bytes;
	for (unsigned i = 0; i < rx->slots; i++) {
		rx->vectors[i].iov_base = (uint8_t *)rx->vectors[i].iov_base + bytes;
		rx->vectors[i].iov_len = rx->capacity;
	}
}

void sock_close(struct sock *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->tx.buffers);
	free(s->tx.messages);
	free(s->tx.vectors);
	free(s->rx.buffers);
	free(s->rx.messages);
	free(s->rx.vectors);
}

struct io *sock_io_open(size_t size, bool (*set_up)(struct sock *, const struct io_config *, char *, size_t),
        const struct io_config *c, char *err, size_t err_len)
{
	struct sock *s = calloc(1, size);
	struct io *io = (struct io *)s;

	if (!s) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	if (set_up(s, c, err, err_len))
		return io;
	sock_io_close(io);
	return NULL;
}

void sock_io_close(struct io *io)
{
	sock_close((struct sock *)io);
	free(io);
}

void sock_io_facts(struct io *io, struct io_facts *facts)
{
	facts->ring = ((struct sock *)io)->ring;
}

void sock_io_rx_release(struct io *io)
{
	(void)io;
}

void sock_wait(int fd, unsigned events, uint64_t ns)
{
	const struct timespec limit = clock_timespec(ns);
	struct pollfd ready = {.fd = fd};

	ready.events = (short)((events & IO_RX ? POLLIN : 0) | (events & IO_TX ? POLLOUT : 0));
	ppoll(&ready, 1, &limit, NULL);
}

void sock_io_wait(struct io *io, unsigned events, uint64_t ns)
{
	sock_wait(((struct sock *)io)->fd, events, ns);
}

static int set_buffer(int fd, int forced, int polite, int bytes)
{
	int taken = 0;
	socklen_t length = sizeof(taken);

	if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, polite, &bytes, sizeof(bytes));
	getsockopt(fd, SOL_SOCKET, polite, &taken, &length);
	return taken;
}

static uint64_t true_size(const struct io_config *c)
{
	return c->packet_size + TRUESIZE_OVERHEAD;
}

int sock_buffer_bytes(const struct io_config *c)
{
	uint64_t wanted = c->ring * true_size(c);

	return wanted < BUFFER_MIN ? (int)BUFFER_MIN : wanted > INT32_MAX / 2 ? INT32_MAX / 2 : (int)wanted;
}

void sock_tune(struct sock *s, const struct io_config *c)
{
	const struct timeval block = {.tv_usec = BLOCK_US};
	int bytes = sock_buffer_bytes(c);

	set_buffer(s->fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
	s->ring = (uint32_t)((uint64_t)set_buffer(s->fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes) / true_size(c));
	if (c->blocking) {
		setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &block, sizeof(block));
		setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &block, sizeof(block));
	}
}

bool sock_check_mtu(int fd, const char *interface, const struct io_config *c, char *err, size_t err_len)
{
	uint32_t needed = c->packet_size - FRAME_FCS_BYTES - FRAME_ETH_BYTES;
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(fd, SIOCGIFMTU, &request) < 0) {
		snprintf(err, err_len, "interface '%.60s': %s", interface, strerror(errno));
		return false;
	}
	if (needed <= (uint32_t)request.ifr_mtu)
		return true;
	snprintf(err, err_len,
	        "packet size %u needs an MTU of %u, and that of %s is %d: raise it, or send at most %u bytes",
	        c->packet_size, needed, interface, request.ifr_mtu,
	        (unsigned)request.ifr_mtu + FRAME_FCS_BYTES + FRAME_ETH_BYTES);
	return false;
}

bool sock_link_up(const struct sock *s)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq request = {0};
	bool running;

	memcpy(request.ifr_name, s->interface, sizeof(request.ifr_name));
	if (ioctl(s->fd, SIOCGIFFLAGS, &request) < 0)
		return false;
	if (!(request.ifr_flags & IFF_UP))
		return false;
	running = request.ifr_flags & IFF_RUNNING; /* shares its place with ifr_data */
	/* The carrier itself, which IFF_RUNNING follows up to a second later. */
	request.ifr_data = (char *)&link;
	if (ioctl(s->fd, SIOCETHTOOL, &request) == 0)
		return link.data;
	return running;
}

bool sock_io_link_up(struct io *io)
{
	return sock_link_up((struct sock *)io);
}

uint8_t *sock_tx_buffer(const struct sock *s, unsigned slot)
{
	return s->tx.buffers + slot * s->tx.stride;
}

unsigned sock_tx_lend(struct sock *s, uint8_t *buffers[], unsigned n)
{
	struct sock_tx *tx = &s->tx;

	if (n > tx->slots)
		n = tx->slots;
	for (unsigned i = 0, slot = tx->head; i < n; i++, slot = slot + 1 == tx->slots ? 0 : slot + 1)
		buffers[i] = sock_tx_buffer(s, slot);
	if (n > tx->lent)
		tx->lent = n;
	return n;
}

void sock_tx_resize(struct sock *s, unsigned i, size_t length)
{
	struct sock_tx *tx = &s->tx;
	unsigned slot = (tx->head + i) % tx->slots;

	tx->vectors[slot].iov_len = tx->vectors[slot + tx->slots].iov_len = length;
}

void sock_tx_taken(struct sock_tx *tx, unsigned n)
{
	tx->head = (tx->head + n) % tx->slots;
	tx->lent -= n;
}

int sock_tx_send(struct sock *s, unsigned n)
{
	struct sock_tx *tx = &s->tx;
	int taken;

	if (n > tx->lent)
		n = tx->lent;
	taken = sock_send(s, tx->messages + tx->head, n);
	if (taken > 0)
		sock_tx_taken(tx, (unsigned)taken);
	return taken;
}

/* Whether an error only means that the port is full. */
static bool merely_full(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR;
}

static int send_one(const struct sock *s, const struct iovec *v)
{
	return send(s->fd, v->iov_base, v->iov_len, s->flags) < 0 ? -1 : 1;
}

int sock_send(struct sock *s, struct mmsghdr *messages, unsigned n)
{
	unsigned taken = 0;
	bool retried = false;

	while (taken < n) {
		int k;

		if (s->mmsg)
			k = sendmmsg(s->fd, messages + taken, n - taken, s->flags);
		else
			k = send_one(s, messages[taken].msg_hdr.msg_iov);
		if (k > 0) {
			taken += (unsigned)k;
			continue;
		}
		/* This was the pending error of an earlier datagram; reading it has cleared it. */
		if (errno == ECONNREFUSED && !retried) {
			retried = true;
			continue;
		}
		if (merely_full(errno) || errno == ECONNREFUSED || taken)
			break;
		return -1;
	}
	return (int)taken;
}

int sock_receive(struct sock *s, unsigned n)
{
	struct sock_rx *rx = &s->rx;
	int got = 0;

	if (n > rx->slots)
		n = rx->slots;
	if (!s->mmsg && s->prompt)
		n = 1; /* another call would only find the queue empty */
	if (s->mmsg) {
		got = recvmmsg(s->fd, rx->messages, n, s->flags | MSG_WAITFORONE | MSG_TRUNC, NULL);
	} else {
		for (; (unsigned)got < n; got++) {
			int wait = got ? MSG_DONTWAIT : s->flags;
			ssize_t length =
			        recv(s->fd, rx->vectors[got].iov_base, rx->capacity, wait | MSG_TRUNC);

			if (length < 0) {
				got = got ? got : -1;
				break;
			}
			rx->messages[got].msg_len = (unsigned)length;
		}
	}
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNREFUSED))
		return 0;
	return got;
}

unsigned sock_io_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	return sock_tx_lend((struct sock *)io, payload, n);
}

int sock_io_tx_commit(struct io *io, unsigned n)
{
	return sock_tx_send((struct sock *)io, n);
}

void sock_io_tx_resize(struct io *io, unsigned i, uint32_t bytes)
{
	sock_tx_resize((struct sock *)io, i, bytes);
}
