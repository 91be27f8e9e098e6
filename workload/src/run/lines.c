/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of output that all applications have in common. */
#include "run/run.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/frame.h"

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
	if (o->queues > 1)
		json_u64(j, "queues", o->queues);
	json_u64(j, "packet_size", o->packet_size);
	json_u64(j, "frame_bytes", o->packet_size - FRAME_FCS_BYTES);
	json_u64(j, "stream", o->stream_id);
	json_u64(j, "tsc_hz", r->clock.hz);
	json_bool(j, "invariant_tsc", true);
	json_u64(j, "window_ns", (uint64_t)(o->window_s * 1e9 + 0.5));
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

static uint64_t process_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void json_counts(struct json *j, const char *key, const uint64_t *counts, unsigned n)
{
	json_open(j, key, '[');
	for (unsigned i = 0; i < n; i++)
		json_u64(j, NULL, counts[i]);
	json_close(j, ']');
}

static void queues_json(struct run *r)
{
	const uint64_t *sent, *received;
	unsigned n;

	if (!r->ops || !r->ops->queue_counts)
		return;
	n = r->ops->queue_counts(r->io, &sent, &received);
	json_counts(&r->json, "sent_by_queue", sent, n);
	json_counts(&r->json, "received_by_queue", received, n);
}

void run_finish_summary(struct run *r)
{
	struct json *j = &r->json;
	struct rusage usage;

	queues_json(r);
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
