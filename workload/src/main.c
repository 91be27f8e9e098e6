/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line and runs what it names. */
#include <stdio.h>

#include "app/apps.h"
#include "option/options.h"
#include "run/run.h"

static void print_version(void)
{
	const char *dpdk = io_dpdk_version();

	printf("icbench-workload %s, %s\n", ICBENCH_VERSION, dpdk ? dpdk : "without DPDK");
	printf("%s AF_XDP\n", io_backend_find("xdp", 0)->ops ? "with" : "without");
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
	case OPTIONS_GUEST:
		return app_guest(argc - 2, argv + 2);
	case OPTIONS_RELAY:
		return app_relay(argc - 2, argv + 2);
	case OPTIONS_BAD:
		fprintf(stderr, "icbench-workload: %s\n", err);
		return EXIT_USAGE;
	default:
		return run(&o);
	}
}
