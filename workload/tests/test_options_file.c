/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the applications that take a file: replay and capture. */
#include "check.h"
#include "command_line.h"

int main(void)
{
	const char *plain[] = {"icbench-workload", "replay", "x.pcap", "-R", "eth0"};
	const char *addressed[] = {
	        "icbench-workload", "dpdk-capture", "-b", "8", "y.pcap", ADDRESSES, "--duration", "1e6"};
	const char *few[] = {"icbench-workload", "capture", "x.pcap", "10.0.0.1", "-R", "eth0"};
	const char *many[] = {"icbench-workload", "capture", "x.pcap", ADDRESSES, "more", "-R", "eth0"};
	const char *nothing[] = {"icbench-workload", "dpdk-replay"};
	const char *empty[] = {"icbench-workload", "dpdk-replay", ""};
	const char *udp[] = {"icbench-workload", "capture", "x.pcap"};
	const char *null[] = {"icbench-workload", "dpdk-replay", "x.pcap", "--io", "null"};
	const char *twice[] = {"icbench-workload", "dpdk-replay", "x.pcap", "--timing", "-r", "5"};
	const char *alone[] = {"icbench-workload", "dpdk-replay", "x.pcap", "--step"};
	const char *same[] = {"icbench-workload", "dpdk-replay", "x.pcap", "--capture", "x.pcap"};
	const char *all[] = {"icbench-workload", "dpdk-replay", "x.pcap", "--capture=z.pcap", "--loop", "0",
	        "--timing", "--step", "--supervised"};
	struct options o;

#define PARSE(words) parse_line(&o, (int)(sizeof(words) / sizeof(words[0])), words)
	CHECK(PARSE(plain) == OPTIONS_RUN);
	CHECK(o.app == &app_replay && strcmp(o.backend->name, "raw") == 0 && strcmp(o.file, "x.pcap") == 0);
	CHECK(o.io.packet_size == 1518 && o.loop == 1 && !o.timing && !o.step && !o.capture_file);
	CHECK(PARSE(addressed) == OPTIONS_RUN);
	CHECK(o.app == &app_capture && strcmp(o.backend->name, "dpdk") == 0 &&
	        strcmp(o.file, "y.pcap") == 0 && o.io.burst == 8);
	CHECK(o.io.ends.local_mac[5] == 0x0a && o.duration_s == 1e6);
	CHECK(PARSE(all) == OPTIONS_RUN);
	CHECK(o.loop == 0 && o.timing && o.step && strcmp(o.capture_file, "z.pcap") == 0);
	CHECK(PARSE(few) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "capture needs LOCAL_IP LOCAL_MAC REMOTE_IP REMOTE_MAC, and 1 of them");
	CHECK(PARSE(many) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "unexpected argument 'more'");
	CHECK(PARSE(nothing) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "dpdk-replay needs a FILE");
	CHECK(PARSE(empty) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "FILE must be a name");
	CHECK(PARSE(udp) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "capture needs -R IF");
	CHECK(PARSE(null) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "needs -R IF");
	CHECK(PARSE(twice) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--timing keeps");
	CHECK(PARSE(alone) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "add --supervised");
	CHECK(PARSE(same) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "would overwrite");
#undef PARSE
	return 0;
}
