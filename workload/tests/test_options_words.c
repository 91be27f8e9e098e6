/* SPDX-License-Identifier: BSD-3-Clause */
/* Words around options: application, addresses, arguments after "--"; and options that depend on each other.
 */
#include "check.h"
#include "command_line.h"

static void applications(void)
{
	static const char *const NAMES[] = {"send", "recv", "client", "server"};
	char twin[16];
	struct options o;

	for (int i = 0; i < 4; i++) {
		const char *argv[] = {"x", NAMES[i], ADDRESSES};
		const char *linked[] = {"/usr/bin/dpdk-send", ADDRESSES};

		CHECK(parse_line(&o, 6, argv) == OPTIONS_RUN);
		CHECK(strcmp(o.app->name, NAMES[i]) == 0 && strcmp(o.backend->name, "udp") == 0);
		snprintf(twin, sizeof(twin), "dpdk-%s", NAMES[i]);
		argv[1] = twin;
		CHECK(parse_line(&o, 6, argv) == OPTIONS_RUN);
		CHECK(strcmp(o.app->name, NAMES[i]) == 0 && strcmp(o.backend->name, "dpdk") == 0 &&
		        strcmp(o.app_name, twin) == 0);
		linked[0] = twin;
		CHECK(parse_line(&o, 5, linked) == OPTIONS_RUN);
		CHECK(strcmp(o.app->name, NAMES[i]) == 0 && strcmp(o.backend->name, "dpdk") == 0);
	}
}

static void traces(void)
{
	static const char *const BAD[] = {"", "1,", ",1", "-1", "1;2", "1e10"};
	struct options o;

	CHECK(parse3(&o, "--rate=1", "--trace", "15k,0,2.5") == OPTIONS_RUN);
	CHECK(o.trace_seconds == 3 && o.trace[0] == 15000 && o.trace[1] == 0 && o.trace[2] == 2.5);
	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++)
		CHECK(parse3(&o, "--rate=1", "--trace", BAD[i]) == OPTIONS_BAD);
	CHECK(parse3(&o, "--trace", "1,2", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--trace needs --rate, the rate of the warm-up");
}

static void sockets_to_wait_for(void)
{
	const char *waits[] = {"x", "dpdk-recv", ADDRESSES, "--await=/run/s", "--", "--vdev=net_memif0"};
	struct options o;

	CHECK(parse_line(&o, 9, waits) == OPTIONS_RUN);
	CHECK(strcmp(o.io.await_socket, "/run/s") == 0 && o.io.eal_argc == 1);
	waits[1] = "recv";
	CHECK(parse_line(&o, 7, waits) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--await");
}

static void without_an_application(void)
{
	const char *none[] = {"icbench-workload"}, *wrong[] = {"icbench-workload", "sned"};
	const char *pause[] = {"icbench-workload", "pause"}, *distance[] = {"icbench-workload", "distance"},
	           *version[] = {"icbench-workload", "--version"};
	const char *list[] = {"icbench-workload", "--options"};
	const char *help[] = {"icbench-workload", "--help"},
	           *app_help[] = {"icbench-workload", "recv", "--help"};
	struct options o;

	CHECK(parse_line(&o, 1, none) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "send, recv, client, server, duplex, replay, capture, forward, ask, echo, ");
	CHECK(parse_line(&o, 2, wrong) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "'sned'");
	CHECK_CONTAINS(err, "send, recv, client, server, duplex, replay, capture, forward, ask, echo, ");
	CHECK(parse_line(&o, 2, pause) == OPTIONS_PAUSE);
	CHECK(parse_line(&o, 2, distance) == OPTIONS_DISTANCE);
	CHECK(parse_line(&o, 2, version) == OPTIONS_VERSION);
	CHECK(parse_line(&o, 2, list) == OPTIONS_LIST);
	CHECK(parse_line(&o, 2, help) == OPTIONS_HELP);
	CHECK(!o.app_name);
	CHECK(parse_line(&o, 3, app_help) == OPTIONS_HELP);
	CHECK(strcmp(o.app_name, "recv") == 0);
	CHECK(options_parse(&o, APPLICATIONS, 0, NULL, err, sizeof(err)) == OPTIONS_BAD);
}

static void addresses(void)
{
	static const char *const BAD_IP[] = {"10.0.0", "10.0.0.256", "::1", "", "ten", "10.0.0.1/24"};
	static const char *const BAD_MAC[] = {"02:00:00:00:00", "02:00:00:00:00:0g", "02-00-00-00-00-01",
	        "02:00:00:00:00:01:02", "0200.0000.0001", "", "2:0:0:0:0:1", "02:00:00:00:00:1"};
	static const char *const NAMES[] = {"LOCAL_IP", "LOCAL_MAC", "REMOTE_IP", "REMOTE_MAC"};
	struct options o;

	for (int position = 0; position < 4; position++) {
		size_t n = position % 2 ? sizeof(BAD_MAC) / sizeof(char *) : sizeof(BAD_IP) / sizeof(char *);

		for (size_t i = 0; i < n; i++) {
			const char *argv[] = {"x", "send", ADDRESSES};

			argv[2 + position] = position % 2 ? BAD_MAC[i] : BAD_IP[i];
			CHECK(parse_line(&o, 6, argv) == OPTIONS_BAD);
			CHECK_CONTAINS(err, NAMES[position]);
		}
	}
	for (int given = 0; given < 4; given++) {
		const char *argv[] = {"x", "send", ADDRESSES};

		CHECK(parse_line(&o, 2 + given, argv) == OPTIONS_BAD);
		CHECK_CONTAINS(err, "REMOTE_MAC");
	}
	CHECK(parse3(&o, "5th", NULL, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "'5th'");
}

static void options_between_addresses(void)
{
	const char *argv[] = {"x", "recv", "-m", "10.0.0.1", "-b", "8", "02:00:00:00:00:01", "10.0.0.2",
	        "--drain=1", "02:00:00:00:00:02"};
	struct options o;

	CHECK(parse_line(&o, 10, argv) == OPTIONS_RUN);
	CHECK(o.app == &app_recv && o.io.mmsg && o.io.burst == 8 && o.drain_s == 1);
}

static void eal_options(void)
{
	const char *argv[] = {"x", "dpdk-send", ADDRESSES, "--", "--no-pci", "-m", "128"};
	struct options o;

	CHECK(parse_line(&o, 10, argv) == OPTIONS_RUN);
	CHECK(o.io.eal_argc == 3 && strcmp(o.io.eal_argv[0], "--no-pci") == 0 && !o.io.mmsg);
	argv[1] = "send";
	CHECK(parse_line(&o, 10, argv) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--no-pci");
	CHECK(parse_line(&o, 7, argv) == OPTIONS_RUN);
}

static void what_no_single_option_says(void)
{
	const char *burst[] = {"x", "dpdk-send", ADDRESSES, "-b", "512"};
	struct options o;

	CHECK(parse_line(&o, 8, burst) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "ring of 256");
	burst[1] = "send";
	CHECK(parse_line(&o, 8, burst) == OPTIONS_RUN);
	CHECK(parse3(&o, "--duration=6553.5", NULL, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--window");
	CHECK(parse3(&o, "--duration=6553.5", "--window=1", NULL) == OPTIONS_RUN);
}

int main(void)
{
	applications();
	traces();
	sockets_to_wait_for();
	without_an_application();
	addresses();
	options_between_addresses();
	eal_options();
	what_no_single_option_says();
	return 0;
}
