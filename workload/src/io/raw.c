/* SPDX-License-Identifier: BSD-3-Clause */
/* AF_PACKET raw sockets: whole frames, made and parsed here. */
#include "io/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"
#include "io/sock.h"
#include "option/options.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

struct io {
	struct sock sock;
	uint16_t udp_port;
};

/* Unfragmented IPv4 without options, UDP, to our port; the kernel drops all else before it costs a copy. */
static bool attach_filter(int fd, uint16_t port)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 9),
	        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FRAME_ETH_BYTES),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 7),
	        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, FRAME_ETH_BYTES + 6),
	        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 5, 0),
	        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FRAME_ETH_BYTES + 9),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
	        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, FRAME_ETH_BYTES + FRAME_IP_BYTES + 2),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	        BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

static bool bind_interface(struct sock *s, const struct options *o, char *err, size_t err_len)
{
	struct sockaddr_ll link = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	int on = 1;

	link.sll_ifindex = (int)if_nametoindex(o->raw_interface);
	if (!link.sll_ifindex) {
		snprintf(err, err_len, "there is no interface '%.60s' here", o->raw_interface);
		return false;
	}
	/* Ours come back only to ETH_P_ALL sockets; asked for all the same, since kernels may change that. */
	setsockopt(s->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	if (!attach_filter(s->fd, o->ends.udp_port) ||
	        bind(s->fd, (struct sockaddr *)&link, sizeof(link)) < 0) {
		snprintf(err, err_len, "raw socket on %s: %s", o->raw_interface, strerror(errno));
		return false;
	}
	snprintf(s->interface, sizeof(s->interface), "%s", o->raw_interface);
	return true;
}

static bool set_up(struct sock *s, const struct options *o, char *err, size_t err_len)
{
	if (!sock_init(s, o, o->packet_size - FRAME_FCS_BYTES, err, err_len))
		return false;
	for (unsigned i = 0; i < s->tx.slots; i++)
		frame_write_headers(sock_tx_buffer(s, i), &o->ends, o->packet_size);
	/* Protocol 0: nothing is queued before the filter is in place. */
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		snprintf(err, err_len, "no raw socket: %s%s", strerror(errno),
		        errno == EPERM ? " (it needs CAP_NET_RAW)" : "");
		return false;
	}
	sock_tune(s, o);
	return bind_interface(s, o, err, err_len) && sock_check_mtu(s->fd, o->raw_interface, o, err, err_len);
}

static struct io *raw_open(const struct options *o, int eal_argc, char **eal_argv, char *err, size_t err_len)
{
	struct io *io = sock_io_open(sizeof(*io), set_up, o, err, err_len);

	(void)eal_argc;
	(void)eal_argv;
	if (io)
		io->udp_port = o->ends.udp_port;
	return io;
}

static unsigned raw_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	n = sock_tx_lend(&io->sock, payload, n);
	for (unsigned i = 0; i < n; i++)
		payload[i] += FRAME_HEADER_BYTES;
	return n;
}

static void raw_tx_resize(struct io *io, unsigned i, uint32_t bytes)
{
	sock_tx_resize(&io->sock, i, bytes);
}

static int raw_tx_commit(struct io *io, unsigned n)
{
	return sock_tx_send(&io->sock, n);
}

static int raw_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	int got = sock_receive(&io->sock, n);

	for (int i = 0; i < got; i++) {
		uint8_t *l2 = rx->vectors[i].iov_base;
		size_t length = rx->messages[i].msg_len;
		struct io_frame *f = &frames[i];

		f->l2 = l2;
		f->frame_len = (uint16_t)(length + FRAME_FCS_BYTES);
		f->payload = frame_parse(
		        l2, length <= rx->capacity ? (uint32_t)length : 0, io->udp_port, &f->payload_len);
	}
	return got;
}

static int raw_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	struct mmsghdr answers[IO_BURST_MAX];
	struct iovec vectors[IO_BURST_MAX];
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!keep[i])
			continue;
		frame_reflect(rx->vectors[i].iov_base);
		vectors[m] = (struct iovec){rx->vectors[i].iov_base, rx->messages[i].msg_len};
		answers[m] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[m], .msg_iovlen = 1}};
		m++;
	}
	return sock_send(&io->sock, answers, m);
}

const struct io_ops io_raw = {
        .name = "raw",
        .sees_l2 = true,
        .open = raw_open,
        .close = sock_io_close,
        .facts = sock_io_facts,
        .link_up = sock_io_link_up,
        .tx_acquire = raw_tx_acquire,
        .tx_commit = raw_tx_commit,
        .rx_poll = raw_rx_poll,
        .rx_release = sock_io_rx_release,
        .rx_reflect = raw_rx_reflect,
        .tx_resize = raw_tx_resize,
};
