/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/frame.h"
#include "run/run.h"

/* Kept lines that a hot loop writes at a time, so that a reader that wakes up does not stall it. */
#define CATCH_UP_LINES 4
#define WAIT_MS 100

void output_init(struct output *e, int fd, bool hold)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	*e = (struct output){.fd = fd, .hold = hold};
	if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) && !(flags & O_NONBLOCK))
		e->made_nonblocking = fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void output_close(struct output *e)
{
	if (e->made_nonblocking)
		fcntl(e->fd, F_SETFL, fcntl(e->fd, F_GETFL) & ~O_NONBLOCK);
	free(e->kept);
	e->kept = NULL;
	e->kept_start = e->kept_end = e->kept_capacity = 0;
}

static void keep(struct output *e, const char *line, size_t length)
{
	if (e->kept_start == e->kept_end)
		e->kept_start = e->kept_end = 0;
	if (e->kept_end + length > e->kept_capacity) {
		size_t capacity = (e->kept_end + length) * 2 + 65536;
		char *grown = realloc(e->kept, capacity);

		if (!grown) /* a lost progress line is better than a lost run */
			return;
		e->kept = grown;
		e->kept_capacity = capacity;
	}
	memcpy(e->kept + e->kept_end, line, length);
	e->kept_end += length;
	e->held_lines++;
}

/* Tries once to write the oldest kept line. Returns false if it must wait. */
static bool write_oldest(struct output *e)
{
	const char *start = e->kept + e->kept_start;
	size_t length = (size_t)((const char *)memchr(start, '\n', e->kept_end - e->kept_start) - start) + 1;
	ssize_t n = write(e->fd, start, length);

	if (n < 0) {
		if (errno == EPIPE || errno == EBADF || errno == EIO)
			e->broken = true;
		return false;
	}
	/* A write of more than PIPE_BUF can be partial: the rest goes first next time. */
	e->kept_start += (size_t)n;
	return (size_t)n == length;
}

void output_line(struct output *e, const char *line, size_t length)
{
	if (e->broken)
		return;
	keep(e, line, length);
	if (e->hold)
		return;
	for (int i = 0; i < CATCH_UP_LINES && e->kept_start < e->kept_end; i++)
		if (!write_oldest(e))
			break;
}

void output_line_now(struct output *e, const char *line, size_t length, const volatile bool *give_up)
{
	if (e->broken)
		return;
	keep(e, line, length);
	while (e->kept_start < e->kept_end && !e->broken) {
		struct pollfd p = {.fd = e->fd, .events = POLLOUT};

		if (write_oldest(e) || e->broken)
			continue;
		if (*give_up)
			break;
		poll(&p, 1, WAIT_MS);
	}
}

void run_write_line(struct run *r)
{
	struct json *j = &r->json;

	json_end_line(j);
	output_line_now(&r->output, j->text, j->length, &control_abandon);
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
	json_string(j, "dpdk", o->backend->flags & IO_EAL ? io_dpdk_version() : NULL);
	json_string(j, "mac", mac);
	json_u64(j, "ring", facts->ring);
	json_u64(j, "burst", o->io.burst);
	if (o->io.queues > 1)
		json_u64(j, "queues", o->io.queues);
	json_u64(j, "packet_size", o->io.packet_size);
	json_u64(j, "frame_bytes", o->io.packet_size - FRAME_FCS_BYTES);
	json_u64(j, "stream", o->io.stream_id);
	json_u64(j, "tsc_hz", r->clock.hz);
	json_bool(j, "invariant_tsc", true);
	json_u64(j, "window_ns", (uint64_t)(o->window_s * 1e9 + 0.5));
}

void run_write_ready(struct run *r, bool link_up, bool announced)
{
	struct json *j = &r->json;

	json_begin_line(j, "ready");
	json_bool(j, "link_up", link_up);
	json_bool(j, "announced", announced);
	json_u64(j, "monotonic_ns", clock_monotonic_ns());
	run_write_line(r);
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

uint64_t run_cpu_ns(void)
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
	json_u64(j, "cpu_ns", run_cpu_ns() - r->cpu_ns_before);
	json_u64(j, "voluntary_switches", (uint64_t)usage.ru_nvcsw - r->voluntary_before);
	json_u64(j, "involuntary_switches", (uint64_t)usage.ru_nivcsw - r->involuntary_before);
	run_write_line(r);
}

void run_begin_counting(struct run *r)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	r->voluntary_before = (uint64_t)usage.ru_nvcsw;
	r->involuntary_before = (uint64_t)usage.ru_nivcsw;
	r->cpu_ns_before = run_cpu_ns();
}
