/* SPDX-License-Identifier: BSD-3-Clause */
/* What --help prints. */
#include "option/table.h"

#include <string.h>

static void print_default(FILE *out, const struct option_row *row)
{
	const char *field = (const char *)&OPTION_DEFAULTS + row->offset;

	switch (row->kind) {
	case KIND_U16:
		fprintf(out, " [%u]", *(const uint16_t *)(const void *)field);
		break;
	case KIND_U32:
		fprintf(out, " [%u]", *(const uint32_t *)(const void *)field);
		break;
	case KIND_U64:
		fprintf(out, " [%llu]", (unsigned long long)*(const uint64_t *)(const void *)field);
		break;
	case KIND_RATE:
	case KIND_SECONDS:
	case KIND_MICROSECONDS:
		fprintf(out, " [%g]", *(const double *)(const void *)field);
		break;
	default:
		break;
	}
}

static const char *positions(const struct application *app)
{
	if (app && app->forwards)
		return "";
	if (app && app->any_frame)
		return "FILE [LOCAL_IP LOCAL_MAC REMOTE_IP REMOTE_MAC] ";
	return "LOCAL_IP LOCAL_MAC REMOTE_IP REMOTE_MAC ";
}

void options_help(FILE *out, const struct application *const apps[], const struct options *o)
{
	char names[128];

	options_app_names(apps, names, sizeof(names));
	fprintf(out, "usage: icbench-workload %s %s[options] [-- EAL options]\n",
	        o->app ? o->app_name : "APP", positions(o->app));
	if (!o->app)
		fprintf(out,
		        "       icbench-workload replay FILE | capture FILE [options] [-- EAL options]\n"
		        "       icbench-workload forward -R IF -R IF [options]\n"
		        "       icbench-workload dpdk-forward [options] -- EAL options\n"
		        "       icbench-workload pause\n"
		        "       icbench-workload --version | --help | APP --help\n"
		        "APP is one of %s, or one of these with dpdk- in front.\n",
		        names);
	fputs("\n", out);
	for (size_t i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &OPTION_TABLE[i];
		char left[40], letter[5] = "    ";
		char range[64] = "";

		if (row->letter)
			snprintf(letter, sizeof(letter), "-%c, ", row->letter);
		snprintf(left, sizeof(left), "%s--%s %s", letter, row->name,
		        row->argument ? row->argument : "");
		if (row->max > row->min && row->kind != KIND_FAULT && row->kind != KIND_TRAIN)
			snprintf(range, sizeof(range), " (%.15g to %.15g)", row->min, row->max);
		fprintf(out, "  %-26s %s%s", left, row->help, range);
		print_default(out, row);
		fputs("\n", out);
	}
}
