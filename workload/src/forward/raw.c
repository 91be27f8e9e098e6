/* SPDX-License-Identifier: BSD-3-Clause */
/* A forwarder's AF_PACKET sockets: whole frames of any protocol.
 *
 * What the kernel passes with a frame is sent with it. A VLAN tag (removed on receipt) is reinserted. The
 * virtio header says which checksum is still missing, since a UDP socket on a veth leaves it to a device.
 * Frames larger than the interface's MTU (segmentation left to a device) cannot be stored; they count as
 * missed.
 */
#include "forward/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/frame.h"
#include "forward/raw_frame.h"
#include "io/io.h"
#include "io/packet_socket.h"
#include "io/sock.h"

struct raw_port {
	int fd;
	char name[IF_NAMESIZE];
	uint8_t mac[6];
	uint32_t ring;
	uint64_t missed;
	struct raw_frame *next[IO_BURST_MAX]; /* buffers for the next frames */
};

struct forward_io {
	unsigned ports, burst;
	bool mmsg;
	uint32_t capacity; /* bytes of the largest frame, without FCS */
	struct raw_pool pool;
	struct mmsghdr *messages;
	struct iovec *vectors;
	uint8_t *controls;
	struct raw_port port[IO_PORTS_MAX];
};

static void raw_release(struct forward_io *io, void *frames[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		raw_frame_release(&io->pool, frames[i]);
}

static bool set_options(int fd)
{
	int on = 1;

	return packet_refuse_outgoing(fd) &&
	       setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) == 0 &&
	       setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) == 0;
}

static bool take_all_addresses(int fd, int index)
{
	struct packet_mreq request = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};

	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)) == 0;
}

static bool bind_port(struct forward_io *io, struct raw_port *p, const char *name, char *err, size_t err_len)
{
	struct sockaddr_ll link = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct ifreq request = {0};
	uint32_t frame;

	link.sll_ifindex = packet_interface(name, err, err_len);
	if (!link.sll_ifindex)
		return false;
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (!set_options(p->fd) || !take_all_addresses(p->fd, link.sll_ifindex) ||
	        ioctl(p->fd, SIOCGIFMTU, &request) < 0 ||
	        bind(p->fd, (struct sockaddr *)&link, sizeof(link)) < 0) {
		snprintf(err, err_len, "raw socket on %s: %s", name, strerror(errno));
		return false;
	}
	frame = (uint32_t)request.ifr_mtu + FRAME_ETH_BYTES + RAW_VLAN_BYTES;
	if (frame > io->capacity)
		io->capacity = frame;
	if (ioctl(p->fd, SIOCGIFHWADDR, &request) == 0)
		memcpy(p->mac, request.ifr_hwaddr.sa_data, sizeof(p->mac));
	return true;
}

static bool open_port(struct forward_io *io, const struct io_config *c, char *err, size_t err_len)
{
	const char *name = c->interfaces[io->ports];
	struct raw_port *p = &io->port[io->ports];
	struct sock s;

	p->fd = packet_open(SOCK_NONBLOCK, err, err_len);
	if (p->fd < 0)
		return false;
	io->ports++;
	s = (struct sock){.fd = p->fd};
	sock_tune(&s, c);
	p->ring = s.ring;
	if (!bind_port(io, p, name, err, err_len))
		return false;
	/* Without --packet-size, the largest frame is that of the interface. */
	return c->packet_size <= FRAME_PACKET_STANDARD || sock_check_mtu(p->fd, name, c, err, err_len);
}

static bool make_frames(struct forward_io *io, uint32_t kept)
{
	/* Frames that wait at the ports, and a burst in transit. */
	uint32_t frames = io->ports * (io->burst + kept) + io->burst;

	io->messages = calloc(io->burst, sizeof(*io->messages));
	io->vectors = calloc(io->burst, sizeof(*io->vectors));
	io->controls = calloc(io->burst, PACKET_CONTROL_BYTES);
	if (!io->messages || !io->vectors || !io->controls || !raw_pool_init(&io->pool, frames, io->capacity))
		return false;
	for (unsigned port = 0; port < io->ports; port++)
		for (unsigned i = 0; i < io->burst; i++)
			io->port[port].next[i] = raw_frame_take(&io->pool);
	return true;
}

static void raw_close(struct forward_io *io)
{
	for (unsigned i = 0; i < io->ports; i++)
		close(io->port[i].fd);
	raw_pool_free(&io->pool);
	free(io->messages);
	free(io->vectors);
	free(io->controls);
	free(io);
}

static struct forward_io *raw_open(const struct io_config *c, uint32_t kept, char *err, size_t err_len)
{
	struct forward_io *io = calloc(1, sizeof(*io));

	if (!io) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	io->burst = c->burst;
	io->mmsg = c->mmsg;
	io->capacity = c->packet_size - FRAME_FCS_BYTES;
	while (io->ports < c->interface_count)
		if (!open_port(io, c, err, err_len))
			goto failed;
	if (make_frames(io, kept))
		return io;
	snprintf(err, err_len, "out of memory for %u frames of %u bytes: choose a smaller --delay-queue",
	        kept, io->capacity);
failed:
	raw_close(io);
	return NULL;
}

static unsigned raw_ports(const struct forward_io *io)
{
	return io->ports;
}

static void raw_facts(struct forward_io *io, unsigned port, struct forward_port_facts *facts)
{
	const struct raw_port *p = &io->port[port];
	struct sock s = {.fd = p->fd};

	memcpy(s.interface, p->name, sizeof(s.interface));
	facts->name = p->name;
	facts->ring = p->ring;
	facts->link_up = sock_link_up(&s);
	memcpy(facts->mac, p->mac, sizeof(facts->mac));
}

static uint64_t raw_missed(struct forward_io *io, unsigned port)
{
	struct raw_port *p = &io->port[port];
	p->missed += packet_missed(p->fd);
	return p->missed;
}

static bool merely_empty_or_full(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR;
}

/* Points the i-th message to a buffer. */
static void aim(struct forward_io *io, unsigned i, struct raw_frame *f)
{
	f->start = RAW_ROOM_BYTES - RAW_HEADER_BYTES;
	io->vectors[i] = (struct iovec){f->data + f->start, RAW_HEADER_BYTES + io->capacity};
	io->messages[i].msg_hdr = (struct msghdr){.msg_iov = &io->vectors[i],
	        .msg_iovlen = 1,
	        .msg_control = io->controls + i * PACKET_CONTROL_BYTES,
	        .msg_controllen = PACKET_CONTROL_BYTES};
}

static int receive(struct forward_io *io, struct raw_port *p, unsigned n)
{
	int got = 0;

	for (unsigned i = 0; i < n; i++)
		aim(io, i, p->next[i]);
	if (io->mmsg) {
		got = recvmmsg(p->fd, io->messages, n, MSG_DONTWAIT | MSG_TRUNC, NULL);
	} else {
		for (; (unsigned)got < n; got++) {
			ssize_t length = recvmsg(p->fd, &io->messages[got].msg_hdr, MSG_DONTWAIT | MSG_TRUNC);

			if (length < 0) {
				got = got ? got : -1;
				break;
			}
			io->messages[got].msg_len = (unsigned)length;
		}
	}
	return got < 0 && merely_empty_or_full(errno) ? 0 : got;
}

/* Describes the i-th message in its buffer. Returns false if it is no whole frame. */
static bool describe(struct forward_io *io, unsigned i, struct raw_frame *f)
{
	const struct mmsghdr *m = &io->messages[i];
	const struct tpacket_auxdata *aux = packet_auxiliary(&io->messages[i].msg_hdr);

	if (m->msg_len > RAW_HEADER_BYTES + io->capacity || m->msg_len < RAW_HEADER_BYTES + FRAME_ETH_BYTES)
		return false;
	f->length = m->msg_len - RAW_HEADER_BYTES;
	if (aux && aux->tp_status & TP_STATUS_VLAN_VALID)
		raw_frame_tag(f,
		        aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETHERTYPE_VLAN,
		        aux->tp_vlan_tci);
	return true;
}

static int raw_rx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	struct raw_port *p = &io->port[port];
	int got = receive(io, p, n), whole = 0;

	for (int i = 0; i < got; i++) {
		if (!describe(io, (unsigned)i, p->next[i])) {
			p->missed++;
			continue;
		}
		frames[whole++] = p->next[i];
		p->next[i] = raw_frame_take(&io->pool);
	}
	return got < 0 ? got : whole;
}

static void raw_wait(struct forward_io *io, uint64_t ns)
{
	const struct timespec limit = clock_timespec(ns);
	struct pollfd ports[IO_PORTS_MAX];

	for (unsigned i = 0; i < io->ports; i++)
		ports[i] = (struct pollfd){.fd = io->port[i].fd, .events = POLLIN};
	ppoll(ports, io->ports, &limit, NULL);
}

/* Sends the next messages of a burst. Returns how many left, 0 if the port is full, or -1 with errno. */
static int send_some(struct forward_io *io, const struct raw_port *p, void *frames[], unsigned n)
{
	int got;

	n = n < io->burst ? n : io->burst;
	for (unsigned i = 0; i < n; i++) {
		struct raw_frame *f = frames[i];

		io->vectors[i] = (struct iovec){f->data + f->start, RAW_HEADER_BYTES + f->length};
		io->messages[i].msg_hdr = (struct msghdr){.msg_iov = &io->vectors[i], .msg_iovlen = 1};
	}
	if (io->mmsg)
		got = sendmmsg(p->fd, io->messages, n, MSG_DONTWAIT);
	else
		got = sendmsg(p->fd, &io->messages[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
	return got < 0 && merely_empty_or_full(errno) ? 0 : got;
}

static int raw_tx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	unsigned done = 0, taken = 0;
	int got = 0;

	while (done < n) {
		got = send_some(io, &io->port[port], frames + done, n - done);
		if (got < 0 && (errno == EMSGSIZE || errno == EINVAL)) {
			done++; /* this frame does not fit through the port: refuse it and continue */
			continue;
		}
		if (got <= 0)
			break;
		done += (unsigned)got;
		taken += (unsigned)got;
	}
	raw_release(io, frames, n);
	return got < 0 && done < n ? -1 : (int)taken;
}

static void raw_share(void *frame)
{
	((struct raw_frame *)frame)->references++;
}

static uint8_t *raw_bytes(void *frame, uint32_t *length)
{
	struct raw_frame *f = frame;

	*length = f->length;
	return f->data + f->start + RAW_HEADER_BYTES;
}

const struct forward_ops forward_raw = {
        .name = "raw",
        .open = raw_open,
        .close = raw_close,
        .ports = raw_ports,
        .facts = raw_facts,
        .missed = raw_missed,
        .rx = raw_rx,
        .wait = raw_wait,
        .tx = raw_tx,
        .release = raw_release,
        .share = raw_share,
        .bytes = raw_bytes,
};
