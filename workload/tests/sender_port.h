/* SPDX-License-Identifier: BSD-3-Clause */
/* A port for tests of the sender, and the windows that the sender has ended. */
#ifndef ICBENCH_TEST_SENDER_PORT_H
#define ICBENCH_TEST_SENDER_PORT_H

#include "check.h"
#include "io/io.h"
#include "traffic/sender.h"

#define PORT_BURST 8u

/* A port that takes the configured number of frames. */
static struct {
	unsigned takes; /* frames of each burst */
	uint8_t buffers[PORT_BURST][FRAME_PACKET_MIN];
	uint64_t taken;
	unsigned waits, events; /* calls of wait(), and all events that they named */
} port;

static unsigned port_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	(void)io;
	for (unsigned i = 0; i < n; i++)
		payload[i] = port.buffers[i];
	return n;
}

static int port_commit(struct io *io, unsigned n)
{
	unsigned taken = n < port.takes ? n : port.takes;

	(void)io;
	port.taken += taken;
	return (int)taken;
}

static void port_wait(struct io *io, unsigned events, uint64_t ns)
{
	(void)io;
	CHECK(ns > 0);
	port.waits++;
	port.events |= events;
	port.takes = PORT_BURST;
}

static const struct io_ops PORT = {
        .name = "test", .tx_acquire = port_acquire, .tx_commit = port_commit, .wait = port_wait};

static struct window_tx windows[8];

static void keep(void *context, uint16_t number, const struct window_tx *w)
{
	(void)context;
	CHECK(number < 8);
	windows[number] = *w;
}

/* Starts a sender that passes its windows to on_window and keeps the times of its frames. */
static void port_start(struct sender *s, struct run *r, double backlog_s, sender_window on_window)
{
	clock_anchor(&r->clock);
	clock_calibrate(&r->clock);
	memset(windows, 0, sizeof(windows));
	CHECK(sender_init(s, r, backlog_s, on_window, NULL) && sender_keep_times(s));
	r->start = clock_cycles();
	sender_start(s);
}

#endif
