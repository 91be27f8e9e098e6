/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected UDP sockets: the kernel adds and removes the headers. */
#include "io/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"
#include "io/sock.h"
#include "io/udp.h"

/* Finds the interface that has the address. */
static bool find_interface(struct in_addr address, char name[IF_NAMESIZE])
{
	struct ifaddrs *all, *a;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (a = all; a && !found; a = a->ifa_next) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a->ifa_addr;

		found = in && in->sin_family == AF_INET && in->sin_addr.s_addr == address.s_addr;
		if (found)
			snprintf(name, IF_NAMESIZE, "%s", a->ifa_name);
	}
	/* All of 127.0.0.0/8 is local, but only 127.0.0.1 is listed. */
	if (!found && ntohl(address.s_addr) >> 24 == 127)
		found = snprintf(name, IF_NAMESIZE, "lo") > 0;
	freeifaddrs(all);
	return found;
}

static bool bind_and_connect(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	struct sockaddr_in local = {
	        .sin_family = AF_INET, .sin_port = htons(c->ends.udp_port), .sin_addr = c->ends.local_ip};
	struct sockaddr_in remote = {
	        .sin_family = AF_INET, .sin_port = htons(c->ends.udp_port), .sin_addr = c->ends.remote_ip};
	char ip[INET_ADDRSTRLEN];

	if (bind(s->fd, (struct sockaddr *)&local, sizeof(local)) < 0) {
		inet_ntop(AF_INET, &c->ends.local_ip, ip, sizeof(ip));
		snprintf(err, err_len, "UDP %s port %u: %s", ip, c->ends.udp_port, strerror(errno));
		return false;
	}
	if (connect(s->fd, (struct sockaddr *)&remote, sizeof(remote)) < 0) {
		inet_ntop(AF_INET, &c->ends.remote_ip, ip, sizeof(ip));
		snprintf(err, err_len, "no way to REMOTE_IP %s: %s", ip, strerror(errno));
		return false;
	}
	return true;
}

bool udp_set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	char ip[INET_ADDRSTRLEN];

	if (!sock_init(s, c, frame_payload_bytes(&c->ends.header, c->packet_size), err, err_len))
		return false;
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		snprintf(err, err_len, "no UDP socket: %s", strerror(errno));
		return false;
	}
	if (!find_interface(c->ends.local_ip, s->interface)) {
		inet_ntop(AF_INET, &c->ends.local_ip, ip, sizeof(ip));
		snprintf(err, err_len, "LOCAL_IP %s is the address of no interface here", ip);
		return false;
	}
	if (!sock_check_mtu(s->fd, s->interface, c, err, err_len))
		return false;
	sock_tune(s, c);
	return bind_and_connect(s, c, err, err_len);
}

static struct io *udp_open(const struct io_config *c, char *err, size_t err_len)
{
	return sock_io_open(sizeof(struct sock), udp_set_up, c, err, err_len);
}

void udp_tx_resize(struct io *io, unsigned i, uint32_t bytes)
{
	sock_tx_resize((struct sock *)io, i, bytes - FRAME_HEADER_BYTES);
}

int udp_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	struct sock_rx *rx = &((struct sock *)io)->rx;
	int got = sock_receive((struct sock *)io, n);

	for (int i = 0; i < got; i++) {
		size_t length = rx->messages[i].msg_len;

		frames[i] = (struct io_frame){
		        .payload = length <= rx->capacity ? rx->vectors[i].iov_base : NULL,
		        .payload_len = (uint16_t)length,
		        .frame_len = (uint16_t)(length + FRAME_HEADER_BYTES + FRAME_FCS_BYTES),
		};
	}
	return got;
}

/* The socket is connected, so sending is answering. The received buffers are sent unchanged. */
int udp_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	struct sock_rx *rx = &((struct sock *)io)->rx;
	struct mmsghdr answers[IO_BURST_MAX];
	struct iovec vectors[IO_BURST_MAX];
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!keep[i])
			continue;
		vectors[m] = (struct iovec){rx->vectors[i].iov_base, rx->messages[i].msg_len};
		answers[m] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[m], .msg_iovlen = 1}};
		m++;
	}
	return sock_send((struct sock *)io, answers, m);
}

const struct io_ops io_udp = {
        .name = "udp",
        .sees_l2 = false,
        .open = udp_open,
        .close = sock_io_close,
        .facts = sock_io_facts,
        .link_up = sock_io_link_up,
        .tx_acquire = sock_io_tx_acquire,
        .tx_commit = sock_io_tx_commit,
        .rx_poll = udp_rx_poll,
        .rx_release = sock_io_rx_release,
        .wait = sock_io_wait,
        .rx_reflect = udp_rx_reflect,
        .tx_resize = udp_tx_resize,
};
