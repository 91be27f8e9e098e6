/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of --help and --options. */
#include "option/table.h"

#include <ctype.h>
#include <string.h>

#include "base/json.h"

/* Returns the default of a number; false if the row has none. */
static bool default_number(const struct option_row *row, double *number)
{
	const void *field = (const char *)&OPTION_DEFAULTS + row->offset;

	switch (row->kind) {
	case KIND_U16:
		*number = *(const uint16_t *)field;
		return true;
	case KIND_U32:
		*number = *(const uint32_t *)field;
		return true;
	case KIND_U64:
		*number = (double)*(const uint64_t *)field;
		return true;
	case KIND_RATE:
	case KIND_SECONDS:
	case KIND_MICROSECONDS:
		*number = *(const double *)field;
		return true;
	default:
		return false;
	}
}

static const char *positions(const struct application *app)
{
	if (app && app->forwards)
		return "";
	if (app && app->any_frame)
		return "FILE [LOCAL_IP LOCAL_MAC REMOTE_IP REMOTE_MAC] ";
	if (app && app->sockets)
		return "SERVER_IP ";
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
		        "       icbench-workload ask SERVER_IP | echo SERVER_IP [options]\n"
		        "       icbench-workload pause | distance\n"
		        "       icbench-workload --version | --options | --help | APP --help\n"
		        "APP is %s, or one of these with dpdk- in front.\n"
		        "--options prints the options below as lines of JSON.\n",
		        names);
	fputs("\n", out);
	for (size_t i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &OPTION_TABLE[i];
		char left[40], letter[5] = "    ";
		char range[64] = "", otherwise[32] = "";
		double number;

		if (row->letter)
			snprintf(letter, sizeof(letter), "-%c, ", row->letter);
		snprintf(left, sizeof(left), "%s--%s %s", letter, row->name,
		        row->argument ? row->argument : "");
		if (default_number(row, &number)) {
			snprintf(range, sizeof(range), " (%.15g to %.15g)", row->min, row->max);
			snprintf(otherwise, sizeof(otherwise), " [%g]", number);
		}
		fprintf(out, "  %-26s %s%s%s\n", left, row->help, range, otherwise);
	}
}

/* Writes the unit of a number, such as "s", "us" or "frames"; empty for N, a plain number. */
static void unit_of(const struct option_row *row, char *unit, size_t size)
{
	size_t length = 0;

	for (const char *c = row->argument; strcmp(row->argument, "N") != 0 && *c && length + 1 < size; c++)
		unit[length++] = (char)tolower((unsigned char)*c);
	unit[length] = '\0';
}

void options_print(FILE *out)
{
	struct json j = {0};

	for (size_t i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &OPTION_TABLE[i];
		char letter[2] = {row->letter, '\0'}, unit[16] = "";
		double number;

		json_begin_line(&j, "option");
		json_string(&j, "name", row->name);
		json_string(&j, "letter", row->letter ? letter : NULL);
		json_string(&j, "argument", row->argument);
		if (default_number(row, &number)) {
			unit_of(row, unit, sizeof(unit));
			json_double(&j, "default", number);
			json_double(&j, "least", row->min);
			json_double(&j, "greatest", row->max);
			json_string(&j, "unit", *unit ? unit : NULL);
		}
		json_end_line(&j);
		fwrite(j.text, 1, j.length, out);
	}
	json_free(&j);
}
