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

/* --duration, counted from the start. */
static bool duration_over(struct run *r)
{
	const struct options *o = r->o;
	uint64_t now = clock_cycles();

	if (o->duration_s <= 0 || !run_note_start(r) || (int64_t)(now - r->start) < 0)
		return false;
	return now - r->start >= clock_ns_to_cycles(&r->clock, o->duration_s * 1e9);
}

/* Until --count, --duration or a stop; then what the ring holds is taken, too. */
static const char *capture_all(struct run *r, struct capture *c)
{
	const struct options *o = r->o;
	uint64_t most = o->count ? o->count : UINT64_MAX;
	bool ending = false;
	const char *own = NULL;

	while (!r->error.call && !control_abandon) {
		uint64_t left = most - c->received;
		unsigned n = capture_poll(c, left < IO_BURST_MAX ? (unsigned)left : IO_BURST_MAX);

		if (c->received >= most)
			return own || ending ? own : "count";
		if (ending && !n)
			return own;
		if (!ending && (control_stopped() || duration_over(r))) {
			own = control_stopped() ? NULL : "duration";
			ending = true;
			if (most - c->received > o->ring)
				most = c->received + o->ring;
		} else if (!n && o->yield_every) {
			sched_yield();
		}
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
