/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/distance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/apps.h"
#include "base/json.h"
#include "run/run.h"

static void write_pair(struct json *j, struct distance_meter *m, unsigned a, unsigned b)
{
	struct distance d;

	if (!distance_measure(m, a, b, &d)) {
		json_null(j, NULL);
		return;
	}
	json_open(j, NULL, '{');
	json_double(j, "ns", d.ns);
	json_open(j, "work_ns", '[');
	json_double(j, NULL, d.work_ns[0]);
	json_double(j, NULL, d.work_ns[1]);
	json_close(j, ']');
	json_close(j, '}');
}

/* Parses the number of a CPU. */
static bool parse_cpu(const char **text, unsigned *cpu)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(*text, &end, 10);
	if (end == *text || errno || number > UINT32_MAX)
		return false;
	*text = end;
	*cpu = (unsigned)number;
	return true;
}

/* Answers a line such as "0 1, 1 2". Returns false if it does not consist of pairs. */
static bool answer(struct json *j, struct distance_meter *m, const char *text)
{
	unsigned a, b;

	json_begin_line(j, "distance");
	json_open(j, "pairs", '[');
	while (*text != '\n' && *text) {
		if (!parse_cpu(&text, &a) || !parse_cpu(&text, &b))
			return false;
		if (*text == ',')
			text++;
		else if (*text != '\n' && *text)
			return false;
		write_pair(j, m, a, b);
	}
	json_close(j, ']');
	json_end_line(j);
	return true;
}

int app_distance(void)
{
	static struct distance_meter m;
	struct json j = {0};
	char *text = NULL;
	size_t size = 0;
	int code = EXIT_OK;

	if (!distance_init(&m)) {
		fprintf(stderr, "icbench-workload distance: no second thread can be started\n");
		return EXIT_SETUP;
	}
	while (code == EXIT_OK && getline(&text, &size, stdin) >= 0) {
		if (!answer(&j, &m, text)) {
			fprintf(stderr,
			        "icbench-workload distance: '%.60s' on stdin is not like '0 1, 1 2'\n", text);
			code = EXIT_USAGE;
		} else if (fwrite(j.text, 1, j.length, stdout) != j.length || fflush(stdout) != 0) {
			code = EXIT_IO;
		}
	}
	free(text);
	json_free(&j);
	return code;
}
