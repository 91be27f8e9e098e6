/* SPDX-License-Identifier: BSD-3-Clause */
/* From the command line to what it asks for. */
#include <stdio.h>

#include "app/apps.h"
#include "io/io.h"
#include "option/options.h"
#include "run/run.h"

static void print_version(void)
{
#ifdef HAVE_DPDK
	printf("icbench-workload %s, %s\n", ICBENCH_VERSION, io_dpdk_version());
#else
	printf("icbench-workload %s, without DPDK\n", ICBENCH_VERSION);
#endif
#ifdef HAVE_XDP
	printf("with AF_XDP\n");
#else
	printf("without AF_XDP\n");
#endif
	printf("built with %s\n", ICBENCH_BUILD);
}

int main(int argc, char **argv)
{
	struct options o;
	char err[256];

	switch (options_parse(&o, APPLICATIONS, argc, argv, err, sizeof(err))) {
	case OPTIONS_HELP:
		options_help(stdout, APPLICATIONS, &o);
		return EXIT_OK;
	case OPTIONS_VERSION:
		print_version();
		return EXIT_OK;
	case OPTIONS_LIST:
		options_print(stdout);
		return EXIT_OK;
	case OPTIONS_PAUSE:
		return app_pause();
	case OPTIONS_DISTANCE:
		return app_distance();
	case OPTIONS_BAD:
		fprintf(stderr, "icbench-workload: %s\n", err);
		return EXIT_USAGE;
	default:
		return run(&o);
	}
}
