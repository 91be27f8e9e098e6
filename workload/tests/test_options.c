/* SPDX-License-Identifier: BSD-3-Clause */
/* Each option: its forms, bounds and default, and the sentence about a bad value. */
#include "option/options.h"

#include <arpa/inet.h>

#include "check.h"
#include "command_line.h"

static void defaults(void)
{
	struct options o;
	struct in_addr local, remote;

	inet_pton(AF_INET, "10.0.0.1", &local);
	inet_pton(AF_INET, "10.0.0.2", &remote);
	CHECK(parse3(&o, NULL, NULL, NULL) == OPTIONS_RUN);
	CHECK(o.app == &app_send && strcmp(o.backend->name, "udp") == 0 && strcmp(o.app_name, "send") == 0);
	CHECK(o.io.ends.local_ip.s_addr == local.s_addr && o.io.ends.remote_ip.s_addr == remote.s_addr);
	CHECK(memcmp(o.io.ends.local_mac, "\x02\0\0\0\0\x0a", 6) == 0 &&
	        memcmp(o.io.ends.remote_mac, "\x02\0\0\0\0\x0b", 6) == 0);
	CHECK(o.rate_pps == 0 && o.io.packet_size == 64 && o.io.burst == 32 && !o.raw_interface);
	CHECK(!o.io.mmsg && !o.io.blocking && !o.io.check_payload && !o.silent && !o.supervised);
	CHECK(o.duration_s == 0 && o.warmup_s == 0 && o.window_s == 0.1 && o.drain_s == 2);
	CHECK(o.count == 0 && o.yield_every == 0 && o.catch_up == 0 && o.io.ring == 256 &&
	        o.histogram_digits == 3);
	CHECK(o.io.stream_id == 1 && o.io.ends.udp_port == 9 && o.fault.kind == FAULT_NONE &&
	        o.io.eal_argc == 0);
}

struct numeric {
	const char *name, *letter;
	size_t offset;
	int size; /* bytes of the field; 0: a double */
	const char *low, *high, *below, *above;
};

#define FIELD(f) offsetof(struct options, f), (int)sizeof(((struct options *)0)->f)
#define REAL(f) offsetof(struct options, f), 0

static const struct numeric NUMERIC[] = {
        {"--rate", "-r", REAL(rate_pps), "0", "1000M", "-1", "1000000001"},
        {"--packet-size", "-p", FIELD(io.packet_size), "64", "9216", "63", "9217"},
        {"--burst", "-b", FIELD(io.burst), "1", "1024", "0", "1025"},
        {"--duration", NULL, REAL(duration_s), "0", "6553.4", "-1", "1e8"},
        {"--warmup", NULL, REAL(warmup_s), "0", "1e6", "-0.1", "1e7"},
        {"--count", NULL, FIELD(count), "0", "100000000000000", "-1", "1e15"},
        {"--window", NULL, REAL(window_s), "0.001", "3600", "0.0009", "3601"},
        {"--drain", NULL, REAL(drain_s), "0", "600", "-1", "601"},
        {"--yield", NULL, FIELD(yield_every), "0", "1000000000", "-1", "1000000001"},
        {"--catch-up", NULL, FIELD(catch_up), "0", "1000000000", "-1", "1000000001"},
        {"--stream-id", NULL, FIELD(io.stream_id), "1", "65535", "0", "65536"},
        {"--port", NULL, FIELD(io.ends.udp_port), "1", "65535", "0", "65536"},
        {"--ring", NULL, FIELD(io.ring), "1", "1000000", "0", "1000001"},
        {"--histogram", NULL, FIELD(histogram_digits), "1", "5", "0", "6"},
        {"--delay", NULL, REAL(delay_us), "0", "1e7", "-1", "10000001"},
        {"--delay-queue", NULL, FIELD(delay_queue), "0", "4194304", "-1", "4194305"},
        {"--drop", NULL, FIELD(drop_every), "0", "1000000000", "-1", "1000000001"},
        {"--duplicate", NULL, FIELD(duplicate_every), "0", "1000000000", "-1", "1000000001"},
        {"--reorder", NULL, FIELD(reorder_every), "0", "1000000000", "-1", "1000000001"},
        {"--cost", NULL, FIELD(cost_cycles), "0", "1000000000", "-1", "1000000001"},
};

static double value_of(const struct options *o, const struct numeric *n)
{
	const char *field = (const char *)o + n->offset;

	switch (n->size) {
	case 2:
		return *(const uint16_t *)(const void *)field;
	case 4:
		return *(const uint32_t *)(const void *)field;
	case 8:
		return (double)*(const uint64_t *)(const void *)field;
	default:
		return *(const double *)(const void *)field;
	}
}

static double number(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	return *end == 'M' ? v * 1e6 : v;
}

static void accepted(const struct numeric *n, const char *value)
{
	char joined[64];
	struct options o;

	CHECK(parse3(&o, n->name, value, NULL) == OPTIONS_RUN);
	CHECK(value_of(&o, n) == number(value));
	snprintf(joined, sizeof(joined), "%s=%s", n->name, value);
	CHECK(parse3(&o, joined, NULL, NULL) == OPTIONS_RUN);
	CHECK(value_of(&o, n) == number(value));
	if (!n->letter)
		return;
	CHECK(parse3(&o, n->letter, value, NULL) == OPTIONS_RUN);
	CHECK(value_of(&o, n) == number(value));
	snprintf(joined, sizeof(joined), "%s%s", n->letter, value);
	CHECK(parse3(&o, joined, NULL, NULL) == OPTIONS_RUN);
	CHECK(value_of(&o, n) == number(value));
}

/* Refused, in one sentence that names the option and the value. */
static void refused(const struct numeric *n, const char *value)
{
	struct options o;

	CHECK(parse3(&o, n->name, value, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, n->name);
	CHECK_CONTAINS(err, value);
	CHECK(!strchr(err, '\n'));
}

static void numeric_options(void)
{
	static const char *const GARBAGE[] = {
	        "x", "1x", "0x10", "nan", "inf", "1e999", "", " 1", "1 ", "1,5", "+1", "--burst"};
	struct options o;

	for (size_t i = 0; i < sizeof(NUMERIC) / sizeof(NUMERIC[0]); i++) {
		const struct numeric *n = &NUMERIC[i];

		accepted(n, n->low);
		accepted(n, n->high);
		refused(n, n->below);
		refused(n, n->above);
		for (size_t g = 0; g < sizeof(GARBAGE) / sizeof(GARBAGE[0]); g++)
			refused(n, GARBAGE[g]);
		if (n->size)
			refused(n, "2.5");
		if (strcmp(n->name, "--rate") != 0)
			refused(n, "2k");
		CHECK(parse3(&o, n->name, NULL, NULL) == OPTIONS_BAD);
		CHECK_CONTAINS(err, "needs a value");
	}
}

static void rates(void)
{
	static const struct {
		const char *text;
		double pps;
	} RATES[] = {{"1.5M", 1.5e6}, {"200k", 2e5}, {"0.5", 0.5}, {".25M", 250000}, {"1e6", 1e6},
	        {"14880952", 14880952}};
	struct options o;

	for (size_t i = 0; i < sizeof(RATES) / sizeof(RATES[0]); i++) {
		CHECK(parse3(&o, "-r", RATES[i].text, NULL) == OPTIONS_RUN);
		CHECK(o.rate_pps == RATES[i].pps);
	}
	CHECK(parse3(&o, "-r", "1kk", NULL) == OPTIONS_BAD);
	CHECK(parse3(&o, "-r", "M", NULL) == OPTIONS_BAD);
	CHECK(parse3(&o, "-r", "1G", NULL) == OPTIONS_BAD);
}

static void flags(void)
{
	struct options o;

	CHECK(parse3(&o, "-mB", "-cs", "--supervised") == OPTIONS_RUN);
	CHECK(o.io.mmsg && o.io.blocking && o.io.check_payload && o.silent && o.supervised);
	CHECK(parse3(&o, "--mmsg", "--blocking", "--check-payload") == OPTIONS_RUN);
	CHECK(o.io.mmsg && o.io.blocking && o.io.check_payload && !o.silent);
	CHECK(parse3(&o, "-mb64", NULL, NULL) == OPTIONS_RUN);
	CHECK(o.io.mmsg && o.io.burst == 64);
	CHECK(parse3(&o, "-mb", "64", "-s") == OPTIONS_RUN);
	CHECK(o.io.mmsg && o.io.burst == 64 && o.silent);
	CHECK(parse3(&o, "--silent=1", NULL, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "takes no value");
	CHECK(parse3(&o, "-mx", NULL, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "'-x'");
	CHECK(parse3(&o, "--burs=3", NULL, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "unknown option");
	CHECK(parse3(&o, "-", NULL, NULL) == OPTIONS_BAD);
}

static void backends(void)
{
	struct options o;

	CHECK(parse3(&o, "-R", "veth0", NULL) == OPTIONS_RUN);
	CHECK(strcmp(o.backend->name, "raw") == 0 && strcmp(o.raw_interface, "veth0") == 0);
	CHECK(parse3(&o, "--raw=", NULL, NULL) == OPTIONS_BAD);
	CHECK(parse3(&o, "-X", "veth0", NULL) == OPTIONS_RUN);
	CHECK(strcmp(o.backend->name, "xdp") == 0 && strcmp(o.xdp_interface, "veth0") == 0);
	CHECK(parse3(&o, "-G", NULL, NULL) == OPTIONS_RUN && strcmp(o.backend->name, "udp") == 0 && o.gso);
	CHECK(parse3(&o, "--gso", "-Rveth0", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--gso is for UDP sockets: leave it out, or -R");
	CHECK(parse3(&o, "--gso", "-Xveth0", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "or -X");
	CHECK(parse3(&o, "-Rveth0", "--xdp", "veth1") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "-R veth0 and -X veth1 are two ways to send");
	CHECK(parse3(&o, "--io", "null", NULL) == OPTIONS_RUN);
	CHECK(strcmp(o.backend->name, "null") == 0);
	CHECK(parse3(&o, "--io=udp", NULL, NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "'null'");
	CHECK(parse3(&o, "--io", NULL, NULL) == OPTIONS_BAD);
}

/* A name has modes; the one with most of the wanted flags is taken. */
static void modes(void)
{
	struct options o;

	CHECK(!io_backend_find("no such", 0));
	CHECK(io_backend_find("raw", 0) == io_backend_find("raw", IO_QUEUES));
	CHECK(io_backend_find("raw", IO_ANY_FRAME)->flags & IO_ANY_FRAME);
	CHECK(io_backend_find("dpdk", IO_QUEUES)->flags & IO_QUEUES);
	CHECK(io_backend_find("udp", IO_SEGMENTS)->flags & IO_SEGMENTS);
	CHECK(parse3(&o, "-G", NULL, NULL) == OPTIONS_RUN && o.backend->flags & IO_SEGMENTS);
	CHECK(parse3(&o, "--io", "null", "-Rveth0") == OPTIONS_RUN && o.backend->flags & IO_LOCAL);
	CHECK(strcmp(o.io.interface, "veth0") == 0);
}

static void trains(void)
{
	static const char *const BAD[] = {"", "1", "1:2", "1:2:3:4", "0:2:3", "2:1:3", "1:2:0", "1.5:2:3",
	        "a:2:3", "1:2:", ":2:3", "1:2:3:"};
	struct options o;

	CHECK(parse3(&o, "--train", "32:1M:16", NULL) == OPTIONS_RUN);
	CHECK(o.train_from == 32 && o.train_to == 1000000 && o.train_steps == 16);
	CHECK(parse3(&o, "--train=5:5:1", NULL, NULL) == OPTIONS_RUN);
	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(parse3(&o, "--train", BAD[i], NULL) == OPTIONS_BAD);
		CHECK_CONTAINS(err, "--train");
	}
	CHECK(parse3(&o, "--train=1:2:3", "-r1k", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "leave out --rate 1000");
}

static void faults(void)
{
	static const char *const BAD[] = {
	        "drop", "drop:", "drop:0", "drop:x", "lose:3", ":3", "drop:1.5", "drop:2:3", "dro:1"};
	struct options o;

	CHECK(parse3(&o, "--fault", "drop:10", NULL) == OPTIONS_RUN);
	CHECK(o.fault.kind == FAULT_DROP && o.fault.every == 10);
	CHECK(parse3(&o, "--fault=duplicate:1", NULL, NULL) == OPTIONS_RUN);
	CHECK(o.fault.kind == FAULT_DUPLICATE && o.fault.every == 1);
	CHECK(parse3(&o, "--fault=reorder:1000000000", NULL, NULL) == OPTIONS_RUN);
	CHECK(o.fault.kind == FAULT_REORDER && o.fault.every == 1000000000);
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(parse3(&o, "--fault", BAD[i], NULL) == OPTIONS_BAD);
		CHECK_CONTAINS(err, "--fault");
	}
}

static void help_lists_every_option(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct options o;

	CHECK(out);
	CHECK(parse3(&o, "--help", NULL, NULL) == OPTIONS_HELP);
	options_help(out, APPLICATIONS, &o);
	fclose(out);
	CHECK_CONTAINS(text, "usage: icbench-workload send LOCAL_IP");
	for (size_t i = 0; i < sizeof(NUMERIC) / sizeof(NUMERIC[0]); i++)
		CHECK_CONTAINS(text, NUMERIC[i].name);
	CHECK_CONTAINS(text, "-p, --packet-size BYTES");
	CHECK_CONTAINS(text, "(64 to 9216) [64]");
	CHECK_CONTAINS(text, "--supervised");
	CHECK_CONTAINS(text, "--fault");
	free(text);
}

static void waits(void)
{
	const char *replay[] = {"x", "replay", "FILE", "-Rveth0", "--wait", "interrupt"};
	const char *ask[] = {"x", "ask", "10.0.0.1", "--wait", "adaptive"};
	struct options o;

	CHECK(parse3(&o, NULL, NULL, NULL) == OPTIONS_RUN && o.io.wait == IO_WAIT_POLL);
	CHECK(parse3(&o, "--wait", "interrupt", "-Rveth0") == OPTIONS_RUN && o.io.wait == IO_WAIT_INTERRUPT);
	CHECK(parse3(&o, "--wait=adaptive", "-m", NULL) == OPTIONS_RUN && o.io.wait == IO_WAIT_ADAPTIVE);
	CHECK(parse3(&o, "--wait", "sleep", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--wait takes poll, interrupt or adaptive, not 'sleep'");
	CHECK(parse3(&o, "--wait", "interrupt", "-B") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "leave out --wait");
	CHECK(parse3(&o, "--wait=interrupt", "--io", "null") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "can only poll");
	CHECK(parse_line(&o, 6, replay) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "replay with this port can only poll");
	CHECK(parse_line(&o, 5, ask) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "ask with this port can only poll");
}

static void both_ways(void)
{
	const char *duplex[] = {"x", "duplex", ADDRESSES, "--peer-stream", "257", "-B"};
	struct options o;

	CHECK(parse_line(&o, 8, duplex) == OPTIONS_RUN);
	CHECK(o.io.stream_id == 1 && io_counted_stream(&o.io) == 257);
	CHECK(parse_line(&o, 6, duplex) == OPTIONS_RUN);
	CHECK(io_counted_stream(&o.io) == 1);
	CHECK(parse_line(&o, 9, duplex) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "duplex sends and receives in one loop: leave out --blocking");
}

int main(void)
{
	defaults();
	waits();
	both_ways();
	numeric_options();
	rates();
	flags();
	backends();
	modes();
	trains();
	faults();
	help_lists_every_option();
	return 0;
}
