/* SPDX-License-Identifier: BSD-3-Clause */
/* AF_PACKET raw sockets: whole frames, created and parsed here. */
#include "io/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"
#include "io/packet_socket.h"
#include "io/sock.h"

struct io {
	struct sock sock;
	struct frame_match match;
};

/* The greatest length that can be reported. A kernel link can pass unsegmented buffers that are longer than
 * any frame. */
#define LONGEST (UINT16_MAX - FRAME_FCS_BYTES - FRAME_VLAN_BYTES)

/* Three checks for a tag, the checks of the other headers, then accept and reject. */
#define CODE_MAX (3 * (3 + FRAME_CHECKS_MAX) + 2)

/* A mismatch jumps to the end, whose position is not known yet. */
static void add_check(
        struct sock_filter *code, unsigned *n, uint16_t load, uint32_t offset, uint16_t mask, uint16_t value)
{
	code[(*n)++] = (struct sock_filter)BPF_STMT(BPF_LD | load | BPF_ABS, offset);
	code[(*n)++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask);
	code[(*n)++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
}

/* Lets the kernel drop other frames before they cost a copy. It has already removed a tag. */
static bool attach_filter(int fd, const struct frame_ends *ends, uint16_t port)
{
	struct frame_header bare = {ends->header.ipv6, ends->header.tcp, 0};
	struct frame_check checks[FRAME_CHECKS_MAX];
	unsigned count = frame_checks(&bare, port, checks), n = 0;
	struct sock_filter code[CODE_MAX];
	struct sock_fprog program = {.filter = code};

	if (ends->header.vlan) {
		/* Only PACKET_OUTGOING and PACKET_LOOPBACK have this bit. A socket for all protocols receives
		 * its own frames. */
		add_check(code, &n, BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE), PACKET_OUTGOING, 0);
		add_check(code, &n, BPF_B, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT), 0xff, 1);
		add_check(
		        code, &n, BPF_H, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG), 0x0fff, ends->header.vlan);
	}
	for (unsigned i = 0; i < count; i++)
		add_check(code, &n, checks[i].bytes == 2 ? BPF_H : BPF_B, checks[i].offset, checks[i].mask,
		        checks[i].value);
	for (unsigned i = 0; i < n; i++)
		if (BPF_CLASS(code[i].code) == BPF_JMP)
			code[i].jf = (uint8_t)(n - i);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	program.len = (unsigned short)n;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

static bool bind_interface(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	/* The kernel reports a tag only to sockets for all protocols. */
	const uint16_t kind = c->ends.header.ipv6 ? ETH_P_IPV6 : ETH_P_IP;
	const uint16_t protocol = c->ends.header.vlan ? ETH_P_ALL : kind;
	struct sockaddr_ll link = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol)};
	int on = 1;

	link.sll_ifindex = packet_interface(c->interface, err, err_len);
	if (!link.sll_ifindex)
		return false;
	/* Only ETH_P_ALL sockets receive their own frames, but kernels may change that. */
	setsockopt(s->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	if (!attach_filter(s->fd, &c->ends, io_heard_port(c)) ||
	        bind(s->fd, (struct sockaddr *)&link, sizeof(link)) < 0) {
		snprintf(err, err_len, "raw socket on %s: %s", c->interface, strerror(errno));
		return false;
	}
	snprintf(s->interface, sizeof(s->interface), "%s", c->interface);
	return true;
}

static bool set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	if (!sock_init(s, c, c->packet_size - FRAME_FCS_BYTES, err, err_len))
		return false;
	if (c->ends.header.vlan)
		sock_rx_leave_room(&s->rx, FRAME_VLAN_BYTES);
	for (unsigned i = 0; i < s->tx.slots; i++)
		frame_write_headers(sock_tx_buffer(s, i), &c->ends, c->packet_size);
	s->fd = packet_open(0, err, err_len);
	if (s->fd < 0)
		return false;
	sock_tune(s, c);
	return bind_interface(s, c, err, err_len) && sock_check_mtu(s->fd, c->interface, c, err, err_len);
}

static struct io *raw_open(const struct io_config *c, char *err, size_t err_len)
{
	struct io *io = sock_io_open(sizeof(*io), set_up, c, err, err_len);

	if (io)
		io->match = frame_match(&c->ends.header, io_heard_port(c));
	return io;
}

static unsigned raw_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	n = sock_tx_lend(&io->sock, payload, n);
	for (unsigned i = 0; i < n; i++)
		payload[i] += io->match.header_bytes;
	return n;
}

static int raw_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	const uint16_t vlan = io->match.header.vlan;
	int got = sock_receive(&io->sock, n);

	for (int i = 0; i < got; i++) {
		uint8_t *l2 = rx->vectors[i].iov_base;
		size_t length = rx->messages[i].msg_len < LONGEST ? rx->messages[i].msg_len : LONGEST;
		size_t whole = length <= rx->capacity ? length : 0;
		size_t there = whole ? whole : rx->capacity;
		struct io_frame *f = &frames[i];

		if (vlan) { /* the filter has checked it */
			l2 = frame_put_tag(l2, ETHERTYPE_VLAN, vlan);
			length += FRAME_VLAN_BYTES;
			whole += whole ? FRAME_VLAN_BYTES : 0;
			there += FRAME_VLAN_BYTES;
		}
		f->l2 = l2;
		f->frame_len = (uint16_t)(length + FRAME_FCS_BYTES);
		f->l2_len = (uint16_t)there;
		f->payload = frame_parse(l2, (uint32_t)whole, &io->match, &f->payload_len);
	}
	return got;
}

static int raw_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	struct mmsghdr answers[IO_BURST_MAX];
	struct iovec vectors[IO_BURST_MAX];
	const size_t tag = io->match.header.vlan ? FRAME_VLAN_BYTES : 0;
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!keep[i])
			continue;
		frame_reflect(rx->vectors[i].iov_base - tag, &io->match.header);
		vectors[m] = (struct iovec){rx->vectors[i].iov_base - tag, rx->messages[i].msg_len + tag};
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
        .tx_commit = sock_io_tx_commit,
        .rx_poll = raw_rx_poll,
        .rx_release = sock_io_rx_release,
        .wait = sock_io_wait,
        .rx_reflect = raw_rx_reflect,
        .tx_resize = sock_io_tx_resize,
};
