/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/request_client.h"

#include <stdio.h>

#include "app/apps.h"

static int loop(struct run *r)
{
	struct json *j = &r->json;
	struct request_client a;
	char err[160] = "";

	if (!request_client_init(&a, r, err, sizeof(err))) {
		fprintf(stderr, "icbench-workload %s: %s\n", r->o->app_name, err);
		request_client_free(&a);
		return EXIT_SETUP;
	}
	run_begin_counting(r);
	if (r->o->supervised)
		control_wait_start();
	r->start = clock_cycles();
	request_client_run(&a);
	json_begin_line(j, "summary");
	json_string(j, "role", "ask");
	json_string(j, "reason", run_reason(r, control_stopped() ? NULL : "duration"));
	request_client_json(&a, j);
	run_finish_summary(r);
	request_client_free(&a);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

static bool fits(const struct options *o, char *err, size_t err_len)
{
	if (o->duration_s > 0)
		return true;
	snprintf(err, err_len, "%.40s needs a --duration", o->app_name);
	return false;
}

const struct application app_ask = {
        .name = "ask", .sends = true, .sockets = true, .fits = fits, .loop = loop};
