/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses command lines for tests; the sentence about a bad one is in err. */
#ifndef ICBENCH_COMMAND_LINE_H
#define ICBENCH_COMMAND_LINE_H

#include <stdint.h>

#include "app/apps.h"
#include "option/options.h"

#define ADDRESSES "10.0.0.1", "02:00:00:00:00:0a", "10.0.0.2", "02:00:00:00:00:0B"
#define MAX_ARGS 16

static char err[256];

/* Parses "send" with the addresses and up to three more arguments. */
static inline enum options_outcome parse3(struct options *o, const char *a, const char *b, const char *c)
{
	const char *argv[MAX_ARGS] = {"icbench-workload", "send", ADDRESSES, a, b, c};
	int argc = 6 + (a != NULL) + (b != NULL) + (c != NULL);

	err[0] = 0;
	return options_parse(o, APPLICATIONS, argc, (char **)(uintptr_t)argv, err, sizeof(err));
}

static inline enum options_outcome parse_line(struct options *o, int argc, const char **argv)
{
	err[0] = 0;
	return options_parse(o, APPLICATIONS, argc, (char **)(uintptr_t)argv, err, sizeof(err));
}

#endif
