/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/run.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/frame.h"
#include "io/fault.h"
#include "io/prepare.h"
#include "io/rst_guard.h"

#define LINK_WAIT_NS UINT64_C(10000000000)
#define ANNOUNCE_EVERY_S 30
#define CONTROL_PATIENCE_NS UINT64_C(5000000)
/* In ns. A sleep can end this late, so the rest of the wait for the start polls the clock. */
#define START_SPIN_NS UINT64_C(300000)
/* The longest sleep of an endpoint, after which it looks for a stop. */
#define REST_MAX_NS UINT64_C(50000000)
/* In ns. An adaptive endpoint polls for this long after a frame, and from this long before a burst is due: as
 * long as a CPU takes to wake up. */
#define ADAPTIVE_NS 50e3

/* Receivers send one frame so that the switch learns their MAC address; capture stays silent. */
static bool announces(const struct options *o)
{
	return (o->app->round_trip || o->app->duplex || !o->app->sends) && !o->app->any_frame;
}

static void write_hello(struct run *r)
{
	struct io_facts facts = {.ring = r->o->io.ring};

	memcpy(facts.mac, r->o->io.ends.local_mac, 6);
	r->ops->facts(r->io, &facts);
	run_begin_hello(r, r->ops->name, &facts);
	run_write_line(r);
}

/* Returns whether the link came up in time, before a stop. */
static bool wait_for_link(struct run *r)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t deadline = clock_monotonic_ns() + LINK_WAIT_NS;

	while (!r->ops->link_up(r->io)) {
		if (control_stopped() || clock_monotonic_ns() > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static void sleep_until(uint64_t ns)
{
	uint64_t now;

	while ((now = clock_monotonic_ns()) + START_SPIN_NS < ns && !control_stopped()) {
		uint64_t left = ns - START_SPIN_NS - now;
		struct timespec pause = {.tv_nsec = (long)(left < 50000000 ? left : 50000000)};

		nanosleep(&pause, NULL);
	}
}

/* Returns the start time (CLOCK_MONOTONIC); 0 for now. */
static uint64_t await_start_line(struct run *r)
{
	uint64_t at = 0;

	if (r->o->supervised) {
		control_wait_start();
		control_started(&at);
	}
	return at;
}

static bool set_start(struct run *r, uint64_t at)
{
	clock_anchor(&r->clock);
	r->start = clock_cycles();
	if (at) {
		uint64_t asked = clock_from_monotonic(&r->clock, at);

		/* Catching up with a past moment is pointless: begin now. */
		if ((int64_t)(asked - r->start) > 0)
			r->start = asked;
	}
	return !control_stopped();
}

bool run_wait_start(struct run *r)
{
	uint64_t at = await_start_line(r);

	if (at)
		sleep_until(at);
	return set_start(r, at);
}

bool run_learn_start(struct run *r)
{
	return set_start(r, await_start_line(r));
}

bool run_note_start(struct run *r)
{
	uint64_t at;

	if (r->start)
		return true;
	if (r->o->supervised && !control_started(&at))
		return false;
	if (!r->o->supervised)
		at = 0;
	clock_anchor(&r->clock);
	r->start = at ? clock_from_monotonic(&r->clock, at) : clock_cycles();
	return true;
}

bool run_offer_control(struct run *r, uint64_t sequence)
{
	const struct frame_label label = {r->o->io.stream_id, FRAME_WINDOW_CONTROL, sequence};
	uint8_t *payload;
	int taken;

	if (r->ops->tx_acquire(r->io, &payload, 1) != 1)
		return false;
	prepare_control(&r->o->io, r->ops, r->io, payload);
	frame_stamp(payload, label, clock_cycles());
	if (r->o->io.check_payload)
		frame_fill_padding(
		        payload, frame_payload_bytes(&r->o->io.ends.header, r->o->io.packet_size), sequence);
	prepare_checksum(&r->o->io, r->ops, payload);
	taken = r->ops->tx_commit(r->io, 1);
	if (taken < 0)
		run_failed(r, "send", errno);
	return taken == 1;
}

bool run_send_control(struct run *r, uint64_t sequence)
{
	uint64_t deadline = clock_monotonic_ns() + CONTROL_PATIENCE_NS;

	do {
		if (run_offer_control(r, sequence))
			return true;
		if (r->error.call)
			return false;
		sched_yield();
	} while (clock_monotonic_ns() < deadline);
	return false;
}

void run_announce(struct run *r)
{
	run_send_control(r, 0);
	r->next_announce = clock_cycles() + ANNOUNCE_EVERY_S * r->clock.hz;
}

void run_failed(struct run *r, const char *call, int number)
{
	if (r->error.call)
		return;
	r->error = (struct run_error){number, call};
	fprintf(stderr, "icbench-workload %s: %s failed: %s\n", r->o->app_name, call, strerror(number));
}

uint64_t run_involuntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nivcsw;
}

uint64_t run_rest_ns(const struct run *r, uint64_t until)
{
	uint64_t now = clock_cycles(), left;

	if (r->o->io.wait == IO_WAIT_POLL)
		return 0;
	if (r->o->io.wait == IO_WAIT_ADAPTIVE) {
		uint64_t spin = clock_ns_to_cycles(&r->clock, ADAPTIVE_NS);

		if (now - r->moved < spin)
			return 0;
		until -= spin;
	}
	if ((int64_t)(until - now) <= 0)
		return 0;
	left = clock_cycles_to_ns(&r->clock, until - now);
	return left < REST_MAX_NS ? left : REST_MAX_NS;
}

uint64_t run_rest(struct run *r, unsigned events, uint64_t until)
{
	uint64_t before = clock_cycles(), ns = run_rest_ns(r, until);
	const struct timespec pause = {.tv_nsec = (long)ns};

	if (!ns)
		return 0;
	if (events)
		r->ops->wait(r->io, events, ns);
	else
		nanosleep(&pause, NULL);
	return clock_cycles() - before;
}

static int run_opened(struct run *r)
{
	bool announced = false;

	clock_calibrate(&r->clock); /* most of the calibration time passed while the port was opened */
	write_hello(r);
	if (!wait_for_link(r)) {
		if (control_stopped())
			return r->o->app->loop(r); /* ends immediately with a summary */
		fprintf(stderr,
		        "icbench-workload %s: the link did not come up within %d s; is the other end "
		        "there?\n",
		        r->o->app_name, (int)(LINK_WAIT_NS / 1000000000u));
		return EXIT_LINK;
	}
	if (announces(r->o)) {
		announced = run_send_control(r, 0);
		r->next_announce = clock_cycles() + ANNOUNCE_EVERY_S * r->clock.hz;
		if (r->error.call)
			return EXIT_IO;
	}
	/* A receiver that waits does not poll, and without supervision the start is unknown. */
	if (!r->o->app->sends && r->o->supervised && !r->o->io.blocking && r->o->io.wait == IO_WAIT_POLL)
		r->awaited_ns = UINT64_MAX;
	run_write_ready(r, true, announced);
	run_begin_counting(r);
	return r->o->app->loop(r);
}

/* Reports why the port could not be opened, and what required the packet size. */
static int port_failed(const struct run *r, const char *err)
{
	fprintf(stderr, "icbench-workload %s: %s", r->o->app_name, err);
	if (r->packet_size_reason && strncmp(err, "packet size", 11) == 0)
		fprintf(stderr, " (%s)", r->packet_size_reason);
	fputs("\n", stderr);
	return EXIT_SETUP;
}

/* Only a plain sender has faults. */
static bool has_fault(const struct options *o)
{
	return o->fault.kind != FAULT_NONE && o->app->sends && !o->app->round_trip && !o->app->any_frame;
}

static int open_and_run(struct run *r)
{
	const struct options *o = r->o;
	char err[256] = "";
	int code, guard = -1;

	if (!(o->backend->flags & IO_LOCAL) && !rst_guard_open(&o->io, &guard, err, sizeof(err)))
		return port_failed(r, err);
	r->io = r->ops->open(&o->io, err, sizeof(err));
	if (r->io && has_fault(o))
		r->io = io_fault_wrap(&r->ops, r->io, &o->io, &o->fault, &control_abandon, err, sizeof(err));
	code = r->io ? run_opened(r) : port_failed(r, err);
	if (r->io)
		r->ops->close(r->io);
	if (guard >= 0)
		close(guard);
	return code;
}

int run(struct options *o)
{
	const struct application *app = o->app;
	struct run r = {.o = o};
	char err[256] = "";
	const bool has_port = !app->forwards && !app->sockets;
	int code;

	if (has_port && !(r.ops = o->backend->ops)) {
		fprintf(stderr, "icbench-workload %s: built without %s and build again\n", o->app_name,
		        o->backend->needs);
		return EXIT_SETUP;
	}
	if (!clock_is_invariant()) {
		fprintf(stderr,
		        "icbench-workload %s: this CPU has no invariant time stamp counter, so times cannot "
		        "be trusted\n",
		        o->app_name);
		return EXIT_CLOCK;
	}
	if (!pattern_prepare(&o->io.pattern)) {
		fprintf(stderr, "icbench-workload %s: out of memory for %u flows\n", o->app_name,
		        o->io.pattern.flows);
		return EXIT_SETUP;
	}
	if (app->prepare && !app->prepare(&r, o, err, sizeof(err))) {
		fprintf(stderr, "icbench-workload %s: %s\n", o->app_name, err);
		return EXIT_SETUP;
	}
	if (o->io.wait != IO_WAIT_POLL)
		prctl(PR_SET_TIMERSLACK, 1UL, 0, 0,
		        0); /* 50 us otherwise, by which each burst would be late */
	output_init(&r.output, STDOUT_FILENO, o->silent);
	code = control_init(o->supervised);
	if (code) {
		fprintf(stderr, "icbench-workload %s: no thread to read stdin: %s\n", o->app_name,
		        strerror(code));
		return EXIT_SETUP;
	}
	clock_anchor(&r.clock);
	if (has_port) {
		code = open_and_run(&r);
	} else {
		clock_calibrate(&r.clock);
		code = app->loop(&r);
	}
	output_close(&r.output);
	json_free(&r.json);
	pattern_free(&o->io.pattern);
	return code;
}
