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

#include "capture.h"
#include "frame.h"
#include "io_fault.h"
#include "replay.h"

#define LINK_WAIT_NS UINT64_C(10000000000)
#define ANNOUNCE_EVERY_S 30
#define CONTROL_PATIENCE_NS UINT64_C(5000000)
/* A sleep ends up to this late; the rest of the wait for a start time polls the clock. */
#define START_SPIN_NS UINT64_C(300000)

/* Whether it announces itself: who captures sends nothing that nobody asked for. */
static bool announces(const struct options *o)
{
	return o->app != APP_SEND && !options_any_frame(o);
}

static const struct io_ops *choose_ops(const struct options *o)
{
	switch (o->io) {
	case IO_RAW:
		return options_any_frame(o) ? &io_any : &io_raw;
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

static void say_hello(struct run *r)
{
	const struct options *o = r->o;
	struct io_facts facts = {.ring = o->ring};
	struct json *j = &r->json;
	char mac[18];

	memcpy(facts.mac, o->local_mac, 6);
	r->ops->facts(r->io, &facts);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", facts.mac[0], facts.mac[1], facts.mac[2],
	        facts.mac[3], facts.mac[4], facts.mac[5]);
	json_begin_line(j, "hello");
	json_string(j, "app", o->app_name);
	json_string(j, "version", ICBENCH_VERSION);
	json_i64(j, "pid", getpid());
	json_string(j, "io", r->ops->name);
	json_string(j, "driver", facts.driver);
#ifdef HAVE_DPDK
	json_string(j, "dpdk", o->io == IO_DPDK ? io_dpdk_version() : NULL);
#else
	json_null(j, "dpdk");
#endif
	json_string(j, "mac", mac);
	json_u64(j, "ring", facts.ring);
	json_u64(j, "burst", o->burst);
	json_u64(j, "packet_size", o->packet_size);
	json_u64(j, "frame_bytes", o->packet_size - FRAME_FCS_BYTES);
	json_u64(j, "stream", o->stream_id);
	json_u64(j, "tsc_hz", r->clock.hz);
	json_bool(j, "invariant_tsc", true);
	json_u64(j, "window_ns", (uint64_t)(o->window_s * 1e9 + 0.5));
	json_end_line(j);
	emit_line_now(&r->emit, j->text, j->length, &control_abandon);
}

static void say_ready(struct run *r, bool announced)
{
	struct json *j = &r->json;

	json_begin_line(j, "ready");
	json_bool(j, "link_up", true);
	json_bool(j, "announced", announced);
	json_u64(j, "monotonic_ns", clock_monotonic_ns());
	json_end_line(j);
	emit_line_now(&r->emit, j->text, j->length, &control_abandon);
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
	json_end_line(j);
	emit_line_now(&r->emit, j->text, j->length, &control_abandon);
}

static int run_opened(struct run *r, run_app app)
{
	struct rusage usage;
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
	if (announces(r->o)) {
		announced = run_send_control(r, 0);
		r->next_announce = clock_cycles() + ANNOUNCE_EVERY_S * r->clock.hz;
		if (r->error.call)
			return EXIT_IO;
	}
	say_ready(r, announced);
	getrusage(RUSAGE_SELF, &usage);
	r->voluntary_before = (uint64_t)usage.ru_nvcsw;
	r->involuntary_before = (uint64_t)usage.ru_nivcsw;
	r->cpu_ns_before = process_cpu_ns();
	return app(r);
}

/* Files come before the port: a bad one has changed nothing. */
struct files {
	struct options options; /* with the packet size that the file asks for */
	struct pcap frames;
	struct capture capture;
};

static bool open_files(struct run *r, struct files *files, char *err, size_t err_len)
{
	const struct options *o = r->o;
	const char *into = o->app == APP_CAPTURE ? o->file : o->app == APP_REPLAY ? o->capture_file : NULL;
	uint32_t needed;

	if (o->app == APP_REPLAY && !o->step) {
		if (!pcap_read(&files->frames, o->file, err, err_len))
			return false;
		r->frames = &files->frames;
		needed = replay_packet_size(replay_largest(r->frames));
		files->options = *o;
		files->options.packet_size = needed > FRAME_PACKET_MIN ? needed : FRAME_PACKET_MIN;
		r->o = &files->options;
	}
	if (!into)
		return true;
	r->capture = &files->capture;
	return capture_open(r->capture, r, into, err, err_len);
}

/* Says why the port could not be opened, and which frame it was that asked for so much. */
static int port_failed(const struct run *r, const struct options *o, const char *err)
{
	fprintf(stderr, "icbench-workload %s: %s", o->app_name, err);
	if (r->frames && strncmp(err, "packet size", 11) == 0)
		fprintf(stderr, " (the largest frame of %s is number %zu)", o->file,
		        (size_t)(replay_largest(r->frames) - r->frames->frames) + 1);
	fputs("\n", stderr);
	return EXIT_SETUP;
}

int run(const struct options *o, run_app app)
{
	struct run r = {.o = o, .ops = choose_ops(o)};
	struct files files = {0};
	char err[256] = "";
	int code;

	if (!r.ops) {
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
	if (!open_files(&r, &files, err, sizeof(err))) {
		fprintf(stderr, "icbench-workload %s: %s\n", o->app_name, err);
		pcap_free(&files.frames);
		return EXIT_SETUP;
	}
	emit_init(&r.emit, STDOUT_FILENO, o->silent);
	code = control_init(o->supervised);
	if (code) {
		fprintf(stderr, "icbench-workload %s: no thread to read stdin: %s\n", o->app_name,
		        strerror(code));
		return EXIT_SETUP;
	}
	clock_calibrate(&r.clock);
	r.io = r.ops->open(r.o, o->eal_argc, o->eal_argv, err, sizeof(err));
	if (r.io && o->fault != FAULT_NONE && o->app == APP_SEND)
		r.io = io_fault_wrap(&r.ops, r.io, o, err, sizeof(err));
	if (r.io) {
		code = run_opened(&r, app);
		r.ops->close(r.io);
	} else {
		code = port_failed(&r, o, err);
	}
	emit_close(&r.emit);
	json_free(&r.json);
	pcap_free(&files.frames);
	return code;
}
