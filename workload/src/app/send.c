/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <stdio.h>

#include "run/run.h"
#include "traffic/sender.h"

/* A tenth of a window. A sender can catch up with a time slice on a shared core, while frames that it could
 * never send do not accumulate and make its first windows look full. */
#define BACKLOG_WINDOWS 0.1

static void write_window(void *context, uint16_t number, const struct window_tx *w)
{
	struct run *r = context;
	struct json *j = &r->json;

	window_begin_json(j, "sender", r->o->io.stream_id, number, w);
	window_cycles_json(j, &r->clock, &w->cycles, !r->o->io.blocking);
	json_u64(j, "involuntary_switches", w->involuntary_switches);
	json_u64(j, "cpu_ns", w->cpu_ns);
	json_end_line(j);
	output_line(&r->output, j->text, j->length);
}

static void write_summary(struct sender *s)
{
	struct json *j = &s->r->json;

	json_begin_line(j, "summary");
	json_string(j, "role", "sender");
	json_u64(j, "stream", s->r->o->io.stream_id);
	json_string(j, "reason", run_reason(s->r, s->ended));
	json_u64(j, "windows", s->windows);
	sender_summary(s, j);
	window_cycles_json(j, &s->r->clock, &s->total.cycles, !s->r->o->io.blocking);
	run_finish_summary(s->r);
}

static void send_all(struct sender *s)
{
	enum sender_step step;

	sender_start(s);
	while (!control_stopped() && (step = sender_step(s)) != SENDER_ENDED)
		if (step == SENDER_IDLE || s->full)
			sender_rest(s, 0);
	sender_cut(s);
	sender_end_mark(s);
}

static int loop(struct run *r)
{
	struct sender s;

	if (!sender_init(&s, r, BACKLOG_WINDOWS * r->o->window_s, write_window, r)) {
		fprintf(stderr, "icbench-workload %s: out of memory\n", r->o->app_name);
		return EXIT_SETUP;
	}
	if (run_wait_start(r))
		send_all(&s);
	write_summary(&s);
	sender_repeat_end_mark(&s);
	sender_free(&s);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

const struct application app_send = {.name = "send", .sends = true, .loop = loop};
