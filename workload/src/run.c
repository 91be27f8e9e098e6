/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"
#include "io_fault.h"

#define LINK_WAIT_NS UINT64_C(10000000000)
#define ANNOUNCE_EVERY_S 30
#define CONTROL_PATIENCE_NS UINT64_C(5000000)
/* A sleep ends up to this late; the rest of the wait for a start time polls the clock. */
#define START_SPIN_NS UINT64_C(300000)

static bool receives(const struct options *o)
{
	return o->app != APP_SEND;
}

static const struct io_ops *choose_ops(const struct options *o)
{
	switch (o->io) {
	case IO_RAW:
		return &io_raw;
	case IO_NULL:
		return &io_null;
	case IO_DPDK:
#ifdef HAVE_DPDK
		return &io_dpdk;
#else
		return NULL;
#endif
	default:
		return &io_udp;
	}
}

void run_say(struct run *r)
{
	struct json *j = &r->json;

	json_end_line(j);
	emit_line_now(&r->emit, j->text, j->length, &control_abandon);
}

void run_begin_hello(struct run *r, const char *io_name, const struct io_facts *facts)
{
	const struct options *o = r->o;
	struct json *j = &r->json;
	char mac[18];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", facts->mac[0], facts->mac[1],
	        facts->mac[2], facts->mac[3], facts->mac[4], facts->mac[5]);
	json_begin_line(j, "hello");
	json_string(j, "app", o->app_name);
	json_string(j, "version", ICBENCH_VERSION);
	json_i64(j, "pid", getpid());
	json_string(j, "io", io_name);
	json_string(j, "driver", facts->driver);
#ifdef HAVE_DPDK
	json_string(j, "dpdk", o->io == IO_DPDK ? io_dpdk_version() : NULL);
#else
	json_null(j, "dpdk");
#endif
	json_string(j, "mac", mac);
	json_u64(j, "ring", facts->ring);
	json_u64(j, "burst", o->burst);
	json_u64(j, "packet_size", o->packet_size);
	json_u64(j, "frame_bytes", o->packet_size - FRAME_FCS_BYTES);
	json_u64(j, "stream", o->stream_id);
	json_u64(j, "tsc_hz", r->clock.hz);
	json_bool(j, "invariant_tsc", true);
	json_u64(j, "window_ns", (uint64_t)(o->window_s * 1e9 + 0.5));
}

static void say_hello(struct run *r)
{
	struct io_facts facts = {.ring = r->o->ring};

	memcpy(facts.mac, r->o->local_mac, 6);
	r->ops->facts(r->io, &facts);
	run_begin_hello(r, r->ops->name, &facts);
	run_say(r);
}

void run_say_ready(struct run *r, bool link_up, bool announced)
{
	struct json *j = &r->json;

	json_begin_line(j, "ready");
	json_bool(j, "link_up", link_up);
	json_bool(j, "announced", announced);
	json_u64(j, "monotonic_ns", clock_monotonic_ns());
	run_say(r);
}

/* True when the link is up; false when it did not come up in time or a stop was asked for. */
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
	while (clock_monotonic_ns() + START_SPIN_NS < ns && !control_stopped()) {
		uint64_t left = ns - START_SPIN_NS - clock_monotonic_ns();
		struct timespec pause = {.tv_nsec = (long)(left < 50000000 ? left : 50000000)};

		nanosleep(&pause, NULL);
	}
}

bool run_wait_start(struct run *r)
{
	uint64_t at = 0;

	if (r->o->supervised) {
		control_wait_start();
		control_started(&at);
		sleep_until(at);
	}
	clock_anchor(&r->clock);
	r->start = clock_cycles();
	if (at) {
		uint64_t asked = clock_from_monotonic(&r->clock, at);

		/* A moment that has passed would have to be caught up with: begin now instead. */
		if ((int64_t)(asked - r->start) > 0)
			r->start = asked;
	}
	return !control_stopped();
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

bool run_send_control(struct run *r, uint64_t sequence)
{
	uint64_t deadline = clock_monotonic_ns() + CONTROL_PATIENCE_NS;
	uint32_t length = frame_payload_bytes(r->o->packet_size);
	uint8_t *payload;

	do {
		if (r->ops->tx_acquire(r->io, &payload, 1) == 1) {
			struct frame_label label = {r->o->stream_id, FRAME_WINDOW_CONTROL, sequence};
			int taken;

			frame_stamp(payload, label, clock_cycles());
			if (r->o->touch) {
				frame_fill(payload, length, sequence);
				if (r->ops->sees_l2)
					frame_seal(payload - FRAME_HEADER_BYTES);
			}
			taken = r->ops->tx_commit(r->io, 1);
			if (taken == 1)
				return true;
			if (taken < 0) {
				run_failed(r, "send", errno);
				return false;
			}
		}
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

const char *run_reason(const struct run *r, const char *own)
{
	if (r->error.call)
		return "error";
	if (own)
		return own;
	switch (atomic_load(&control_stop_reason)) {
	case STOP_SIGNAL:
		return "signal";
	case STOP_EOF:
		return "eof";
	default:
		return "stop";
	}
}

uint64_t run_involuntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nivcsw;
}

static uint64_t process_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void run_finish_summary(struct run *r)
{
	struct json *j = &r->json;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	json_u64(j, "cpu_ns", process_cpu_ns() - r->cpu_ns_before);
	json_u64(j, "voluntary_switches", (uint64_t)usage.ru_nvcsw - r->voluntary_before);
	json_u64(j, "involuntary_switches", (uint64_t)usage.ru_nivcsw - r->involuntary_before);
	run_say(r);
}

void run_count_from_here(struct run *r)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	r->voluntary_before = (uint64_t)usage.ru_nvcsw;
	r->involuntary_before = (uint64_t)usage.ru_nivcsw;
	r->cpu_ns_before = process_cpu_ns();
}

static int run_opened(struct run *r, run_app app)
{
	bool announced = false;

	say_hello(r);
	if (!wait_for_link(r)) {
		if (control_stopped())
			return app(r); /* ends at once, with a summary */
		fprintf(stderr,
		        "icbench-workload %s: the link did not come up within %d s; is the other end "
		        "there?\n",
		        r->o->app_name, (int)(LINK_WAIT_NS / 1000000000u));
		return EXIT_LINK;
	}
	if (receives(r->o)) {
		announced = run_send_control(r, 0);
		r->next_announce = clock_cycles() + ANNOUNCE_EVERY_S * r->clock.hz;
		if (r->error.call)
			return EXIT_IO;
	}
	run_say_ready(r, true, announced);
	run_count_from_here(r);
	return app(r);
}

static int open_and_run(struct run *r, run_app app)
{
	const struct options *o = r->o;
	char err[256] = "";
	int code;

	r->io = r->ops->open(o, o->eal_argc, o->eal_argv, err, sizeof(err));
	if (r->io && o->fault != FAULT_NONE && o->app == APP_SEND)
		r->io = io_fault_wrap(&r->ops, r->io, o, err, sizeof(err));
	if (!r->io) {
		fprintf(stderr, "icbench-workload %s: %s\n", o->app_name, err);
		return EXIT_SETUP;
	}
	code = run_opened(r, app);
	r->ops->close(r->io);
	return code;
}

int run(const struct options *o, run_app app)
{
	struct run r = {.o = o};
	int code;

	if (o->app != APP_FORWARD && !(r.ops = choose_ops(o))) {
		fprintf(stderr,
		        "icbench-workload %s: built without DPDK; install libdpdk-dev and build again\n",
		        o->app_name);
		return EXIT_SETUP;
	}
	if (!clock_is_invariant()) {
		fprintf(stderr,
		        "icbench-workload %s: this CPU has no invariant time stamp counter, so times cannot "
		        "be trusted\n",
		        o->app_name);
		return EXIT_CLOCK;
	}
	emit_init(&r.emit, STDOUT_FILENO, o->silent);
	code = control_init(o->supervised);
	if (code) {
		fprintf(stderr, "icbench-workload %s: no thread to read stdin: %s\n", o->app_name,
		        strerror(code));
		return EXIT_SETUP;
	}
	clock_calibrate(&r.clock);
	code = o->app == APP_FORWARD ? app(&r) : open_and_run(&r, app);
	emit_close(&r.emit);
	json_free(&r.json);
	return code;
}
