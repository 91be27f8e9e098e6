/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected UDP sockets with segmentation and aggregation by the kernel. A call passes a train of up to 64
 * datagrams, which traverses the stack as one buffer (UDP_SEGMENT) and may arrive as one (UDP_GRO).
 *
 * Applications count frames, so received trains are split here.
 */
#include "io/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "io/sock.h"
#include "io/udp.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* The datagrams and bytes of UDP payload that a kernel takes at once. */
#define TRAIN_FRAMES 64u
#define TRAIN_BYTES 65507u
/* Trains received with one call. Each can be as long as an IP datagram. */
#define RX_TRAINS 16u
#define RX_BYTES 65536u
#define CONTROL_BYTES CMSG_SPACE(sizeof(int))

union control {
	struct cmsghdr aligned;
	uint8_t bytes[CONTROL_BYTES];
};

struct io {
	struct sock sock;
	struct mmsghdr trains[IO_BURST_MAX];
	union control tx_control[IO_BURST_MAX];
	union control rx_control[RX_TRAINS];
	/* Received trains. The rest of `train` from `offset` on is delivered next. */
	unsigned received, train;
	size_t offset;
	struct iovec frames[IO_BURST_MAX]; /* on loan to the application */
};

/* Returns how many frames make one train: they have one length, except that the last one may be shorter. */
static unsigned train_length(const struct iovec *frames, unsigned n)
{
	size_t segment = frames[0].iov_len, bytes = segment;
	unsigned k = 1;

	while (k < n && k < TRAIN_FRAMES && frames[k].iov_len <= segment &&
	        bytes + frames[k].iov_len <= TRAIN_BYTES) {
		bytes += frames[k].iov_len;
		if (frames[k++].iov_len < segment)
			break;
	}
	return k;
}

static void make_train(struct mmsghdr *m, union control *control, struct iovec *frames, unsigned n)
{
	const uint16_t segment = (uint16_t)frames[0].iov_len;
	struct cmsghdr *c;

	*m = (struct mmsghdr){.msg_hdr = {.msg_iov = frames, .msg_iovlen = n}};
	if (n == 1)
		return;
	m->msg_hdr.msg_control = control;
	m->msg_hdr.msg_controllen = CMSG_SPACE(sizeof(segment));
	c = CMSG_FIRSTHDR(&m->msg_hdr);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
}

/* Sends frames as trains, like sock_send(). A train is taken as a whole. */
static int send_trains(struct io *io, struct iovec *frames, unsigned n)
{
	unsigned count = 0, sent = 0;
	int taken;

	for (unsigned at = 0; at < n; count++) {
		unsigned k = train_length(frames + at, n - at);

		make_train(&io->trains[count], &io->tx_control[count], frames + at, k);
		at += k;
	}
	taken = sock_send(&io->sock, io->trains, count);
	if (taken < 0)
		return -1;
	for (int i = 0; i < taken; i++)
		sent += (unsigned)io->trains[i].msg_hdr.msg_iovlen;
	return (int)sent;
}

/* Makes room for whole trains. The pages become real memory only when a train arrives. */
static bool enlarge_receive_buffers(struct sock_rx *rx, char *err, size_t err_len)
{
	free(rx->buffers);
	rx->slots = rx->slots < RX_TRAINS ? rx->slots : RX_TRAINS;
	rx->stride = rx->capacity = RX_BYTES;
	rx->buffers = calloc(rx->slots, rx->stride);
	if (!rx->buffers) {
		snprintf(err, err_len, "out of memory for %u trains of frames", rx->slots);
		return false;
	}
	for (unsigned i = 0; i < rx->slots; i++)
		rx->vectors[i] = (struct iovec){rx->buffers + i * rx->stride, rx->capacity};
	return true;
}

static bool has_offloads(int fd, char *err, size_t err_len)
{
	const int none = 0, on = 1;

	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0 &&
	        setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0)
		return true;
	snprintf(err, err_len,
	        "this kernel has no UDP segmentation and aggregation (%s): use Linux 5.0 or newer, or leave "
	        "out --gso",
	        strerror(errno));
	return false;
}

static bool set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	if (!udp_set_up(s, c, err, err_len))
		return false;
	s->mmsg = true;
	return has_offloads(s->fd, err, err_len) && enlarge_receive_buffers(&s->rx, err, err_len);
}

static struct io *gso_open(const struct io_config *c, char *err, size_t err_len)
{
	return sock_io_open(sizeof(struct io), set_up, c, err, err_len);
}

static int gso_tx_commit(struct io *io, unsigned n)
{
	struct sock_tx *tx = &io->sock.tx;
	int taken;

	n = n < tx->lent ? n : tx->lent;
	taken = send_trains(io, tx->vectors + tx->head, n);
	if (taken > 0)
		sock_tx_taken(tx, (unsigned)taken);
	return taken;
}

/* Returns the bytes of each datagram of a received train; the last one may be shorter. */
static size_t segment_bytes(struct mmsghdr *m)
{
	int segment = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c; c = CMSG_NXTHDR(&m->msg_hdr, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
	return segment > 0 ? (size_t)segment : m->msg_len;
}

static int receive_trains(struct io *io, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	int got;

	n = n < rx->slots ? n : rx->slots;
	for (unsigned i = 0; i < n; i++) {
		rx->messages[i].msg_hdr.msg_control = &io->rx_control[i];
		rx->messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
	}
	got = sock_receive(&io->sock, n);
	io->received = got > 0 ? (unsigned)got : 0;
	io->train = 0;
	io->offset = 0;
	return got;
}

static int gso_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	unsigned given = 0;

	if (io->train == io->received && receive_trains(io, n) < 0)
		return -1;
	while (given < n && io->train < io->received) {
		struct mmsghdr *m = &rx->messages[io->train];
		size_t left = m->msg_len - io->offset, segment = segment_bytes(m);
		size_t length = left < segment ? left : segment;

		io->frames[given] =
		        (struct iovec){(uint8_t *)rx->vectors[io->train].iov_base + io->offset, length};
		frames[given] = (struct io_frame){
		        .payload = io->frames[given].iov_base,
		        .payload_len = (uint16_t)length,
		        .frame_len = (uint16_t)(length + FRAME_HEADER_BYTES + FRAME_FCS_BYTES),
		};
		given++;
		io->offset += length;
		if (io->offset >= m->msg_len) {
			io->train++;
			io->offset = 0;
		}
	}
	return (int)given;
}

/* The socket is connected, so sending is answering. The received buffers are sent unchanged. */
static int gso_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++)
		if (keep[i])
			io->frames[kept++] = io->frames[i];
	return send_trains(io, io->frames, kept);
}

const struct io_ops io_gso = {
        .name = "udp-gso",
        .sees_l2 = false,
        .open = gso_open,
        .close = sock_io_close,
        .facts = sock_io_facts,
        .link_up = sock_io_link_up,
        .tx_acquire = sock_io_tx_acquire,
        .tx_commit = gso_tx_commit,
        .rx_poll = gso_rx_poll,
        .rx_release = sock_io_rx_release,
        .wait = sock_io_wait,
        .rx_reflect = gso_rx_reflect,
        .tx_resize = udp_tx_resize,
};
