/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/xdp_port.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/frame.h"

#ifndef XDP_OPTIONS_ZEROCOPY
#define XDP_OPTIONS_ZEROCOPY (1 << 0)
#endif

/* The kernel requires a power of two, at most a page, and reserves the headroom before a received frame. */
#define CHUNK_BYTES 2048u
#define CHUNK_BYTES_MAX 4096u
#define HEADROOM_BYTES 256u
/* Enough that a receiver loses nothing while it is off its CPU for a moment. */
#define RX_CHUNKS_MIN 4096u
#define QUEUE 0u
/* The kernel releases a queue some time after the process that held it has ended. */
#define QUEUE_PATIENCE_NS 1000000000u
#define QUEUE_LOOK_US 10000

static size_t memory_bytes(const struct xdp_port *p)
{
	return (size_t)(p->tx_chunks + p->rx_chunks) * p->chunk_bytes;
}

static uint32_t power_of_two(uint32_t least)
{
	uint32_t n = 1;

	while (n < least)
		n *= 2;
	return n;
}

static bool choose_sizes(struct xdp_port *p, const struct io_config *c, char *err, size_t err_len)
{
	p->frame_bytes = c->packet_size - FRAME_FCS_BYTES;
	p->chunk_bytes = p->frame_bytes + HEADROOM_BYTES <= CHUNK_BYTES ? CHUNK_BYTES : CHUNK_BYTES_MAX;
	p->tx_ring = power_of_two(c->ring > c->burst ? c->ring : c->burst);
	p->tx_chunks = 2 * p->tx_ring;
	p->rx_chunks = power_of_two(c->ring > RX_CHUNKS_MIN ? c->ring : RX_CHUNKS_MIN);
	if (p->frame_bytes + HEADROOM_BYTES <= p->chunk_bytes)
		return true;
	snprintf(err, err_len, "packet size %u is more than AF_XDP has in one piece: send at most %u bytes",
	        c->packet_size, CHUNK_BYTES_MAX - HEADROOM_BYTES + FRAME_FCS_BYTES);
	return false;
}

/* Opens an ordinary socket on the interface, and checks that the frames fit. */
static bool open_control(struct xdp_port *p, const struct io_config *c, char *err, size_t err_len)
{
	struct sock *s = &p->control;

	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		snprintf(err, err_len, "no UDP socket: %s", strerror(errno));
		return false;
	}
	if (!if_nametoindex(c->interface)) {
		snprintf(err, err_len, "there is no interface '%.60s' here", c->interface);
		return false;
	}
	snprintf(s->interface, sizeof(s->interface), "%s", c->interface);
	return sock_check_mtu(s->fd, s->interface, c, err, err_len);
}

/* Refuses an interface with several queues: an AF_XDP socket receives one queue and would miss most
 * frames. */
static bool has_one_queue(const struct xdp_port *p, char *err, size_t err_len)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request = {.ifr_data = (char *)&channels};
	uint32_t queues;

	memcpy(request.ifr_name, p->control.interface, sizeof(request.ifr_name));
	if (ioctl(p->control.fd, SIOCETHTOOL, &request) < 0)
		return true;
	queues = channels.combined_count + channels.rx_count;
	if (queues <= 1)
		return true;
	snprintf(err, err_len,
	        "%.60s has %u receive queues, and an AF_XDP socket hears one: ethtool -L %.60s combined 1",
	        p->control.interface, queues, p->control.interface);
	return false;
}

static void explain_memory(const struct xdp_port *p, int error, char *err, size_t err_len)
{
	size_t kib = memory_bytes(p) / 1024;
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

static bool share_memory(struct xdp_port *p, char *err, size_t err_len)
{
	const struct xsk_umem_config config = {
	        .fill_size = p->rx_chunks, .comp_size = p->tx_ring, .frame_size = p->chunk_bytes};
	void *memory = mmap(NULL, memory_bytes(p), PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int error;

	if (memory == MAP_FAILED) {
		explain_memory(p, errno, err, err_len);
		return false;
	}
	p->memory = memory;
	error = xsk_umem__create(&p->umem, memory, memory_bytes(p), &p->fill, &p->completion, &config);
	if (error)
		explain_memory(p, -error, err, err_len);
	return !error;
}

/* Returns 0 or an errno. */
static int take_queue(struct xdp_port *p, const struct xsk_socket_config *config)
{
	uint64_t deadline = clock_monotonic_ns() + QUEUE_PATIENCE_NS;

	for (;;) {
		int error = -xsk_socket__create(
		        &p->xsk, p->control.interface, QUEUE, p->umem, &p->rx, &p->tx, config);

		if (error != EBUSY || clock_monotonic_ns() >= deadline)
			return error;
		usleep(QUEUE_LOOK_US);
	}
}

/* The kernel decides whether the driver can do zero copy, and reports it. */
static bool open_socket(struct xdp_port *p, char *err, size_t err_len)
{
	const struct xsk_socket_config config = {
	        .rx_size = p->rx_chunks,
	        .tx_size = p->tx_ring,
	        .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
	        .bind_flags = XDP_USE_NEED_WAKEUP,
	};
	const char *interface = p->control.interface;
	struct xdp_options taken = {0};
	socklen_t length = sizeof(taken);
	int error = take_queue(p, &config);

	if (!error) {
		p->fd = xsk_socket__fd(p->xsk);
		if (getsockopt(p->fd, SOL_XDP, XDP_OPTIONS, &taken, &length) == 0)
			p->zero_copy = taken.flags & XDP_OPTIONS_ZEROCOPY;
		if (xdp_filter_set(&p->filter, QUEUE, p->fd))
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

/* Writes headers into the chunks for sending and pushes them on the stack; all others wait for frames in the
 * fill ring. */
static bool hand_out_chunks(struct xdp_port *p, const struct io_config *c, char *err, size_t err_len)
{
	uint32_t at = 0;

	p->free = calloc(p->tx_chunks, sizeof(*p->free));
	if (!p->free) {
		snprintf(err, err_len, "out of memory");
		return false;
	}
	for (; p->free_count < p->tx_chunks; p->free_count++) {
		p->free[p->free_count] = (uint64_t)p->free_count * p->chunk_bytes;
		frame_write_headers(p->memory + p->free[p->free_count], &c->ends, c->packet_size);
	}
	xsk_ring_prod__reserve(&p->fill, p->rx_chunks, &at);
	for (uint32_t i = 0; i < p->rx_chunks; i++)
		*xsk_ring_prod__fill_addr(&p->fill, at + i) = (uint64_t)(p->tx_chunks + i) * p->chunk_bytes;
	xsk_ring_prod__submit(&p->fill, p->rx_chunks);
	return true;
}

bool xdp_port_open(struct xdp_port *p, const struct io_config *c, char *err, size_t err_len)
{
	struct frame_ends heard = c->ends;

	heard.udp_port = io_heard_port(c);
	*p = (struct xdp_port){.filter = {-1, -1, -1, false}, .control = {.fd = -1}};
	if (choose_sizes(p, c, err, err_len) && open_control(p, c, err, err_len) &&
	        has_one_queue(p, err, err_len) && share_memory(p, err, err_len) &&
	        xdp_filter_open(&p->filter, c->interface, &heard, err, err_len) &&
	        hand_out_chunks(p, c, err, err_len) && open_socket(p, err, err_len))
		return true;
	xdp_port_close(p);
	return false;
}

void xdp_port_close(struct xdp_port *p)
{
	xdp_filter_close(&p->filter);
	if (p->xsk)
		xsk_socket__delete(p->xsk);
	if (p->umem)
		xsk_umem__delete(p->umem);
	if (p->memory)
		munmap(p->memory, memory_bytes(p));
	if (p->control.fd >= 0)
		close(p->control.fd);
	free(p->free);
}
