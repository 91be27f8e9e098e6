/* SPDX-License-Identifier: BSD-3-Clause */
/* An AF_PACKET raw socket for frames of any kind and length: io_raw without its filter.
 *
 * The kernel removes the VLAN tag of a received frame and passes it separately. It is reinserted here.
 */
#include "io/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"
#include "io/packet_socket.h"
#include "io/sock.h"

struct io {
	struct sock sock;
	uint64_t missed;
	_Alignas(struct cmsghdr) uint8_t control[IO_BURST_MAX][PACKET_CONTROL_BYTES];
};

static bool bind_interface(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	/* A port that only sends has no use for what arrives. */
	bool receives = c->role.receives;
	struct sockaddr_ll link = {.sll_family = AF_PACKET, .sll_protocol = receives ? htons(ETH_P_ALL) : 0};
	struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};
	int on = 1;

	link.sll_ifindex = all.mr_ifindex = packet_interface(c->interface, err, err_len);
	if (!link.sll_ifindex)
		return false;
	if (!packet_refuse_outgoing(s->fd) ||
	        setsockopt(s->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) < 0 ||
	        (receives && setsockopt(s->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) < 0) ||
	        bind(s->fd, (struct sockaddr *)&link, sizeof(link)) < 0) {
		snprintf(err, err_len, "raw socket on %s: %s", c->interface, strerror(errno));
		return false;
	}
	snprintf(s->interface, sizeof(s->interface), "%s", c->interface);
	return true;
}

static bool set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len)
{
	if (!sock_init(s, c, c->packet_size - FRAME_FCS_BYTES + FRAME_TAGS_BYTES, err, err_len))
		return false;
	s->mmsg = true;
	sock_rx_leave_room(&s->rx, FRAME_VLAN_BYTES);
	s->fd = packet_open(0, err, err_len);
	if (s->fd < 0)
		return false;
	sock_tune(s, c);
	return bind_interface(s, c, err, err_len) && sock_check_mtu(s->fd, c->interface, c, err, err_len);
}

static struct io *packet_port_open(const struct io_config *c, char *err, size_t err_len)
{
	return sock_io_open(sizeof(struct io), set_up, c, err, err_len);
}

static unsigned packet_port_tx_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	n = sock_tx_lend(&io->sock, payload, n);
	for (unsigned i = 0; i < n; i++)
		payload[i] += FRAME_HEADER_BYTES;
	return n;
}

static void put_tag_back(struct io_frame *f, const struct tpacket_auxdata *aux)
{
	uint16_t protocol = aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETHERTYPE_VLAN;

	f->l2 = frame_put_tag(f->l2, protocol, aux->tp_vlan_tci);
	f->l2_len = (uint16_t)(f->l2_len + FRAME_VLAN_BYTES);
	f->frame_len = (uint16_t)(f->frame_len + FRAME_VLAN_BYTES);
}

static int packet_port_rx_poll(struct io *io, struct io_frame *frames, unsigned n)
{
	struct sock_rx *rx = &io->sock.rx;
	int got;

	n = n < rx->slots ? n : rx->slots;
	for (unsigned i = 0; i < n; i++) {
		rx->messages[i].msg_hdr.msg_control = io->control[i];
		rx->messages[i].msg_hdr.msg_controllen = PACKET_CONTROL_BYTES;
	}
	got = sock_receive(&io->sock, n);
	for (int i = 0; i < got; i++) {
		const struct tpacket_auxdata *aux = packet_auxiliary(&rx->messages[i].msg_hdr);
		uint32_t length = rx->messages[i].msg_len,
		         longest = UINT16_MAX - FRAME_FCS_BYTES - FRAME_VLAN_BYTES;

		/* A kernel link can pass unsegmented buffers that are longer than any frame. */
		length = length < longest ? length : longest;
		frames[i] = (struct io_frame){
		        .l2 = rx->vectors[i].iov_base,
		        .frame_len = (uint16_t)(length + FRAME_FCS_BYTES),
		        .l2_len = (uint16_t)(length < rx->capacity ? length : rx->capacity),
		};
		if (aux && aux->tp_status & TP_STATUS_VLAN_VALID)
			put_tag_back(&frames[i], aux);
	}
	return got;
}

static uint64_t packet_port_missed(struct io *io)
{
	io->missed += packet_missed(io->sock.fd);
	return io->missed;
}

/* Nothing reflects frames of any kind. */
static int packet_port_rx_reflect(struct io *io, const bool *keep, unsigned n)
{
	(void)io;
	(void)keep;
	(void)n;
	errno = ENOTSUP;
	return -1;
}

const struct io_ops io_packet = {
        .name = "raw",
        .sees_l2 = true,
        .open = packet_port_open,
        .close = sock_io_close,
        .facts = sock_io_facts,
        .link_up = sock_io_link_up,
        .tx_acquire = packet_port_tx_acquire,
        .tx_commit = sock_io_tx_commit,
        .rx_poll = packet_port_rx_poll,
        .rx_release = sock_io_rx_release,
        .rx_reflect = packet_port_rx_reflect,
        .tx_resize = sock_io_tx_resize,
        .missed = packet_port_missed,
};
