/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <sched.h>
#include <stdio.h>

#include "pcap/capture.h"

static struct capture capture;

static bool prepare(struct run *r, struct options *o, char *err, size_t err_len)
{
	return capture_open(&capture, r, o->file, err, err_len);
}

/* Whether --duration, counted from the start, is over. */
static bool duration_over(struct run *r)
{
	const struct options *o = r->o;
	uint64_t now = clock_cycles();

	if (o->duration_s <= 0 || !run_note_start(r) || (int64_t)(now - r->start) < 0)
		return false;
	return now - r->start >= clock_ns_to_cycles(&r->clock, o->duration_s * 1e9);
}

static unsigned poll_up_to(struct capture *c, uint64_t most)
{
	uint64_t left = most - c->received;

	return capture_poll(c, left < IO_BURST_MAX ? (unsigned)left : IO_BURST_MAX);
}

static bool failed(const struct run *r)
{
	return r->error.call || control_abandon;
}

/* Takes what the ring still holds, at most as many frames as it has room for. */
static void empty_ring(struct run *r, struct capture *c, uint64_t most)
{
	if (most - c->received > r->o->io.ring)
		most = c->received + r->o->io.ring;
	while (!failed(r) && c->received < most)
		if (!poll_up_to(c, most))
			return;
}

/* Captures until --count, --duration or a stop. Returns the reason, NULL for a stop or an error. */
static const char *capture_all(struct run *r, struct capture *c)
{
	const struct options *o = r->o;
	const uint64_t most = o->count ? o->count : UINT64_MAX;

	while (!failed(r)) {
		unsigned n = poll_up_to(c, most);

		if (c->received >= most)
			return "count";
		if (control_stopped() || duration_over(r)) {
			const char *reason = control_stopped() ? NULL : "duration";

			empty_ring(r, c, most);
			return reason;
		}
		if (!n && o->yield_every)
			sched_yield();
	}
	return NULL;
}

static int loop(struct run *r)
{
	struct json *j = &r->json;
	struct capture *c = &capture;
	const char *own;

	capture_begin(c);
	own = capture_all(r, c);
	capture_end(c);
	json_begin_line(j, "summary");
	json_string(j, "role", "capture");
	json_string(j, "reason", run_reason(r, own));
	capture_json(c, j);
	run_finish_summary(r);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

const struct application app_capture = {
        .name = "capture", .any_frame = true, .prepare = prepare, .loop = loop};
