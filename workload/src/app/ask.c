/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/ask.h"

#include <stdio.h>

#include "app/apps.h"

static int loop(struct run *r)
{
	struct json *j = &r->json;
	struct ask a;
	char err[160] = "";

	if (!ask_init(&a, r, err, sizeof(err))) {
		fprintf(stderr, "icbench-workload %s: %s\n", r->o->app_name, err);
		ask_free(&a);
		return EXIT_SETUP;
	}
	run_count_from_here(r);
	if (r->o->supervised)
		control_wait_start();
	r->start = clock_cycles();
	ask_run(&a);
	json_begin_line(j, "summary");
	json_string(j, "role", "ask");
	json_string(j, "reason", run_reason(r, control_stopped() ? NULL : "duration"));
	ask_json(&a, j);
	run_finish_summary(r);
	ask_free(&a);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

const struct application app_ask = {.name = "ask", .sends = true, .sockets = true, .loop = loop};
