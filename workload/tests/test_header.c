/* SPDX-License-Identifier: BSD-3-Clause */
/* --header: its values, the frames that have room for it, and their checksums. */
#include "check.h"
#include "command_line.h"
#include "io/prepare.h"

static enum options_outcome raw_line(
        struct options *o, const char *header, const char *name, const char *value)
{
	const char *argv[] = {
	        "icbench-workload", "send", ADDRESSES, "-R", "eth0", "--header", header, name, value};

	return parse_line(o, name ? 12 : 10, argv);
}

static void good_and_bad_names(void)
{
	static const char *const BAD[] = {"", "udp", "udp5", "UDP4", "udp4+", "udp4+vlan", "udp4+vlan0",
	        "udp4+vlan4095", "udp4+vlan1.5", "udp4+vlan1e2", "udp4+vlan-1", "udp4+vlan7+vlan8", "vlan7",
	        "udp4 ", "udp44"};
	struct options o;

	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(raw_line(&o, BAD[i], "-p", "128") == OPTIONS_BAD);
		CHECK_CONTAINS(err, "--header takes udp4, tcp4, udp6 or tcp6, optionally followed by +vlan1 "
		                    "to +vlan4094");
	}
	CHECK(raw_line(&o, "tcp6+vlan4094", "-p", "128") == OPTIONS_RUN);
	CHECK(o.io.ends.header.tcp && o.io.ends.header.ipv6 && o.io.ends.header.vlan == 4094);
	CHECK(raw_line(&o, "udp4", NULL, NULL) == OPTIONS_RUN);
	CHECK(frame_is_plain(&o.io.ends.header));
}

static void least_sizes(void)
{
	static const struct {
		const char *header, *least, *below;
	} LEAST[] = {{"tcp4", "76", "75"}, {"udp6", "84", "83"}, {"tcp6", "96", "95"},
	        {"udp4+vlan1", "68", "67"}, {"tcp4+vlan1", "80", "79"}, {"udp6+vlan1", "88", "87"},
	        {"tcp6+vlan1", "100", "99"}};
	char expected[100];
	struct options o;

	for (unsigned i = 0; i < sizeof(LEAST) / sizeof(LEAST[0]); i++) {
		CHECK(raw_line(&o, LEAST[i].header, "-p", LEAST[i].least) == OPTIONS_RUN);
		CHECK(raw_line(&o, LEAST[i].header, "-p", LEAST[i].below) == OPTIONS_BAD);
		snprintf(expected, sizeof(expected),
		        "packet size %s has no room for that --header: send at least %s bytes",
		        LEAST[i].below, LEAST[i].least);
		CHECK_CONTAINS(err, expected);
	}
	CHECK(raw_line(&o, "udp6", "--sizes", "1518,83,84") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "packet size 83 has no room");
	CHECK(raw_line(&o, "udp6", "--sizes", "1518,84") == OPTIONS_RUN);
}

static void who_cannot_have_it(void)
{
	const char *capture[] = {"icbench-workload", "capture", "x.pcap", "-R", "eth0", "--header", "udp6"};
	const char *forward[] = {
	        "icbench-workload", "forward", "-R", "eth0", "-R", "eth1", "--header", "udp6"};
	const char *xdp[] = {
	        "icbench-workload", "send", ADDRESSES, "-X", "eth0", "-p", "128", "--header", "udp6+vlan7"};
	struct options o;

	CHECK(parse3(&o, "--header=udp6", "-p", "128") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--header needs -R IF or dpdk-send: a UDP socket sends udp4 without a tag");
	CHECK(parse3(&o, "--header=udp4", "-p", "128") == OPTIONS_RUN);
	CHECK(parse_line(&o, 7, capture) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--header");
	CHECK(parse_line(&o, 8, forward) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "forward makes no frames");
	CHECK(parse_line(&o, 12, xdp) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "with a VLAN tag needs -R eth0");
	xdp[11] = "udp6";
	CHECK(parse_line(&o, 12, xdp) == OPTIONS_RUN);
}

/* A frame with a written checksum is valid whatever its stamp, and damage is detected. */
static void seals(void)
{
	static const struct io_ops OPS = {.sees_l2 = true};
	static const char *const NAMES[] = {"tcp4", "udp6", "tcp6", "udp6+vlan3"};
	uint64_t random = 1;

	for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
		struct options o;
		struct frame_match match;
		uint8_t l2[256] = {0}, *payload;
		uint16_t length;

		CHECK(raw_line(&o, NAMES[i], "-p", "201") == OPTIONS_RUN);
		match = frame_match(&o.io.ends.header, o.io.ends.udp_port);
		payload = l2 + match.header_bytes;
		frame_write_headers(l2, &o.io.ends, o.io.packet_size);
		for (unsigned n = 0; n < 100000; n++) {
			frame_stamp(payload, (struct frame_label){1, 2, check_random(&random)},
			        check_random(&random));
			prepare_checksum(&o.io, &OPS, payload);
			CHECK(frame_checksums_ok(l2, &o.io.ends.header));
		}
		CHECK(frame_parse(l2, 197, &match, &length) == payload);
		CHECK_EQUAL(length, frame_payload_bytes(&o.io.ends.header, 201));
		payload[length - 1] ^= 1;
		CHECK(!frame_checksums_ok(l2, &o.io.ends.header));
	}
}

/* A frame with a removed and reinserted tag equals the frame that was sent. */
static void a_tag_is_put_back(void)
{
	uint8_t sent[96], got[FRAME_VLAN_BYTES + 96] = {0}, *l2 = got + FRAME_VLAN_BYTES;
	struct options o = {
	        .io.packet_size = 100, .io.ends = {.udp_port = 9, .local_mac = {2, 1}, .header.vlan = 0x123}};

	frame_write_headers(sent, &o.io.ends, o.io.packet_size);
	memcpy(l2, sent, 12);
	memcpy(l2 + 12, sent + 12 + FRAME_VLAN_BYTES, 40);
	CHECK(frame_put_tag(l2, 0x8100, 0x123) == got);
	CHECK(memcmp(got, sent, 12 + FRAME_VLAN_BYTES + 40) == 0);
}

int main(void)
{
	a_tag_is_put_back();
	good_and_bad_names();
	least_sizes();
	who_cannot_have_it();
	seals();
	return 0;
}
