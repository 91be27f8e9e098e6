/* SPDX-License-Identifier: BSD-3-Clause */
/* In-memory ports for tests of the forwarder, which record where each supplied frame leaves. */
#ifndef ICBENCH_TEST_FORWARD_PORTS_H
#define ICBENCH_TEST_FORWARD_PORTS_H

#include <errno.h>

#include "base/clock.h"
#include "base/frame.h"
#include "check.h"
#include "forward/forward.h"
#include "run/run.h"

#define PORTS 4u
#define POOL 4096u
#define BYTES 60u

struct test_frame {
	int references;
	uint64_t sent_at; /* cycles */
	uint8_t l2[BYTES];
};

/* Each port has an input and an output queue. */
struct forward_io {
	struct test_frame *in[PORTS][POOL], *out[PORTS][POOL];
	unsigned ins[PORTS], next[PORTS], outs[PORTS], room[PORTS];
	int failing;
};

static struct test_frame pool[POOL];
static struct forward_io port_io;

static unsigned test_ports(const struct forward_io *io)
{
	(void)io;
	return PORTS;
}

static uint64_t test_missed(struct forward_io *io, unsigned port)
{
	(void)io;
	return port;
}

static int test_rx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	unsigned got = 0;

	if (io->failing) {
		errno = io->failing;
		return -1;
	}
	while (got < n && io->next[port] < io->ins[port])
		frames[got++] = io->in[port][io->next[port]++];
	return (int)got;
}

static void test_release(struct forward_io *io, void *frames[], unsigned n)
{
	(void)io;
	for (unsigned i = 0; i < n; i++) {
		struct test_frame *f = frames[i];

		CHECK(f->references > 0);
		f->references--;
	}
}

static int test_tx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	unsigned taken = 0;

	for (; taken < n && io->outs[port] < io->room[port]; taken++) {
		io->out[port][io->outs[port]] = frames[taken];
		io->out[port][io->outs[port]++]->sent_at = clock_cycles();
	}
	test_release(io, frames, n);
	return (int)taken;
}

static void test_share(void *frame)
{
	((struct test_frame *)frame)->references++;
}

static uint8_t *test_bytes(void *frame, uint32_t *length)
{
	*length = BYTES;
	return ((struct test_frame *)frame)->l2;
}

static const struct forward_ops OPS = {
        .name = "test",
        .ports = test_ports,
        .missed = test_missed,
        .rx = test_rx,
        .tx = test_tx,
        .release = test_release,
        .share = test_share,
        .bytes = test_bytes,
};

static struct run test_run;
static struct options options;
static struct forward fw;

/* Label of the supplied frames. */
static uint16_t stream = 1;
static uint64_t first_sequence = 1;

/* Supplies n frames to a port; the last one is an end mark on request. */
static void supply(unsigned port, unsigned n, bool end_mark)
{
	static unsigned used;
	struct options o = {.io.packet_size = BYTES + FRAME_FCS_BYTES, .io.ends.udp_port = 9};

	memset(o.io.ends.local_mac, 0xaa, 6);
	memset(o.io.ends.remote_mac, 0xbb, 6);
	for (unsigned i = 0; i < n; i++) {
		struct test_frame *f = &pool[used++ % POOL];
		uint16_t window = end_mark && i == n - 1 ? FRAME_WINDOW_CONTROL : 1;

		CHECK_EQUAL(f->references, 0);
		f->references = 1;
		frame_write_headers(f->l2, &o.io.ends, o.io.packet_size);
		frame_stamp(f->l2 + FRAME_HEADER_BYTES,
		        (struct frame_label){stream, window, first_sequence + i}, 0);
		port_io.in[port][port_io.ins[port]++] = f;
	}
}

static void begin(struct options o)
{
	memset(&port_io, 0, sizeof(port_io));
	for (unsigned i = 0; i < PORTS; i++)
		port_io.room[i] = POOL;
	options = o;
	options.io.ends.udp_port = 9;
	options.io.burst = options.io.burst ? options.io.burst : 32;
	test_run = (struct run){.o = &options};
	clock_anchor(&test_run.clock);
	clock_calibrate(&test_run.clock);
	CHECK(forward_init(&fw, &test_run, &OPS, &port_io));
}

static void check_accounts(void)
{
	for (unsigned i = 0; i < PORTS; i++) {
		const struct forward_way *w = &fw.way[i];

		CHECK_EQUAL(w->received + w->impair.duplicated,
		        w->sent + w->refused + w->impair.dropped + w->overflow + forward_kept(w));
	}
}

static void poll_until_quiet(void)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (unsigned i = 0; i < PORTS; i++)
			moved |= forward_poll(&fw, &fw.way[i], true);
	}
	check_accounts();
}

/* Frees the forwarder and checks that every frame was released as often as it was referenced. */
static void end(void)
{
	forward_free(&fw);
	for (unsigned i = 0; i < POOL; i++)
		CHECK_EQUAL(pool[i].references, 0);
	json_free(&test_run.json);
}

#endif
