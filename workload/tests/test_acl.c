/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that an ACL drops: which they are, what they contain, and how sender and receiver count them. */
#include "base/acl.h"

#include "check.h"
#include "command_line.h"
#include "io/prepare.h"
#include "sender_port.h"
#include "traffic/receiver.h"

static struct options parsed(const char *application, const char *option, const char *acl_drops,
        const char *more, const char *value)
{
	const char *argv[] = {
	        "icbench-workload", application, ADDRESSES, option, acl_drops, more, value, "-p", "100"};
	struct options o;

	if (!more) {
		argv[8] = "-p";
		argv[9] = "100";
	}
	CHECK(parse_line(&o, more ? 12 : 10, argv) == OPTIONS_RUN);
	CHECK(pattern_prepare(&o.io.pattern));
	return o;
}

/* The exact share of places drops, evenly spread. */
static void places(uint32_t percent, uint32_t count)
{
	struct acl d = {.percent = percent, .places = count};
	uint32_t acl_drops = 0;

	for (uint32_t place = 0; place < count; place++) {
		acl_drops += acl_denies_place(&d, place);
		CHECK_EQUAL(acl_drops, (place + 1) * percent / 100);
	}
}

/* A walk equals counting frames one by one. */
static void walks(const char *flows, const char *acl_drops, uint64_t frames)
{
	struct options o = parsed("dpdk-send", "--acl-drops", acl_drops, flows ? "--flows" : NULL, flows);
	struct acl_walk walk = {0};
	uint64_t count = 0, random = frames;

	for (uint64_t i = 0; i < frames; i++) {
		if (check_random(&random) % 3 == 0) {
			acl_walk(&walk, &o.io.acl, &o.io.pattern, i);
			CHECK_EQUAL(walk.acl_drops, count);
		}
		count += acl_denies_frame(&o.io.acl, &o.io.pattern, i);
	}
	acl_walk(&walk, &o.io.acl, &o.io.pattern, frames);
	CHECK_EQUAL(walk.acl_drops, count);
	CHECK(count > 0 && count < frames);
	pattern_free(&o.io.pattern);
}

/* Frames to be dropped have the port of their place, all others and control frames the usual one. */
static void ports(void)
{
	struct options o = parsed("dpdk-send", "--acl-drops", "30:20:10000", "--flows", "50");
	static const struct io_ops OPS = {.sees_l2 = true};
	uint8_t l2[100] = {0}, *payload = l2 + frame_header_bytes(&o.io.ends.header);

	frame_write_headers(l2, &o.io.ends, o.io.packet_size);
	for (uint64_t i = 0; i < 500; i++) {
		const unsigned place = i % 50 % 20;

		prepare_acl(&o.io, &payload, 1, i);
		CHECK_EQUAL(l2[36] << 8 | l2[37],
		        acl_denies_frame(&o.io.acl, &o.io.pattern, i) ? 10000 + place : 9);
		CHECK(acl_denies_frame(&o.io.acl, &o.io.pattern, i) ==
		        ((place + 1) * 30 / 100 > place * 30 / 100));
		CHECK(frame_checksums_ok(l2, &o.io.ends.header));
	}
	prepare_acl(&o.io, &payload, 1, 3);
	CHECK_EQUAL(l2[36] << 8 | l2[37], 10003);
	prepare_control(&o.io, &OPS, NULL, payload);
	CHECK_EQUAL(l2[36] << 8 | l2[37], 9);
	pattern_free(&o.io.pattern);
}

static void texts(void)
{
	struct options o = parsed("dpdk-send", "--acl-drops", "50:2:a rule ", NULL, NULL);
	static const struct io_ops OPS = {.sees_l2 = true};
	uint8_t l2[100] = {0}, *payload = l2 + frame_header_bytes(&o.io.ends.header);
	const uint8_t *text = payload + FRAME_STAMP_BYTES;

	frame_write_headers(l2, &o.io.ends, o.io.packet_size);
	for (uint64_t i = 0; i < 10; i++) {
		prepare_acl(&o.io, &payload, 1, i);
		CHECK((memcmp(text, "a rule 00001", 13) == 0) == (i % 2 == 1));
		CHECK((text[0] == 0) == (i % 2 == 0));
	}
	prepare_control(&o.io, &OPS, NULL, payload);
	CHECK(text[0] == 0 && text[11] == 0);
	pattern_free(&o.io.pattern);
}

/* The sender counts frames to be dropped, with a port that takes only part of a burst. */
static void sender(void)
{
	struct options o = {.io.packet_size = 64,
	        .io.burst = PORT_BURST,
	        .window_s = 1,
	        .duration_s = 5,
	        .rate_pps = 1e9,
	        .count = 4000,
	        .io.stream_id = 1,
	        .io.acl = {.percent = 30, .places = 100, .text = ""}};
	struct run r = {.o = &o, .ops = &PORT};
	struct sender s;
	uint64_t sent;

	port.takes = 3;
	port_start(&s, &r, 1, keep);
	while (sender_step(&s) != SENDER_ENDED)
		;
	sender_cut(&s);
	sent = s.total.sent;
	CHECK(sent > 1000 && sent == s.next_sequence);
	CHECK_EQUAL(s.total.acl_drops, sent / 100 * 30 + sent % 100 * 30 / 100);
	sender_free(&s);
}

static void take(struct receiver *rx, uint16_t window, uint64_t sequence)
{
	uint8_t payload[FRAME_STAMP_BYTES];
	struct io_frame f = {.payload = payload, .payload_len = sizeof(payload), .frame_len = 64};

	frame_stamp(payload, (struct frame_label){rx->r->o->io.stream_id, window, sequence}, 1);
	receiver_take(rx, &f, 1, 10, NULL);
}

static void summary_has(struct receiver *rx, const char *text)
{
	struct json j = {0};

	json_begin_line(&j, "summary");
	receiver_summary(rx, &j);
	json_end_line(&j);
	CHECK_CONTAINS(j.text, text);
	json_free(&j);
}

/* Frames to be dropped are not missing, lost ones are; one that passes is reported and not counted as
 * received. */
static void receiver(const char *flows, const char *acl_drops, uint64_t frames)
{
	struct options o =
	        parsed("dpdk-recv", "--peer-acl-drops", acl_drops, flows ? "--flows" : NULL, flows);
	struct run r = {.o = &o, .clock = {.hz = 2000000000, .ns_per_cycle = 0.5}};
	struct receiver rx;
	uint64_t received = 0, lost = 0, passed = 0;
	char text[128];

	CHECK_EQUAL(io_heard_port(&o.io), o.io.peer_acl.port ? 0 : 9);
	CHECK(receiver_init(&rx, &r, NULL, NULL));
	for (uint64_t i = 0; i < frames; i++) {
		if (acl_denies_frame(&o.io.peer_acl, &o.io.pattern, i)) {
			if (i % 1000 != 3)
				continue;
			passed++;
		} else if (i % 7 == 0 && i < frames / 2) {
			lost++;
			continue;
		} else {
			received++;
		}
		take(&rx, 1, i);
	}
	CHECK(passed && lost);
	CHECK_EQUAL(rx.received, received);
	CHECK_EQUAL(rx.windows[1].received, received);
	CHECK_EQUAL(rx.windows[1].bytes, 64 * received);
	CHECK_EQUAL(rx.acl_drops_passed, passed);
	CHECK_EQUAL(rx.foreign + rx.corrupted + rx.late, 0);
	snprintf(text, sizeof(text), "\"gaps\":%" PRIu64, lost);
	summary_has(&rx, text);
	snprintf(text, sizeof(text), "\"acl_drops_passed\":%" PRIu64, passed);
	summary_has(&rx, text);
	take(&rx, FRAME_WINDOW_CONTROL, frames + 1);
	CHECK_EQUAL(rx.acl_drop_due + received + lost, frames);
	CHECK(!receiver_done(&rx, 20)); /* some are lost */
	receiver_free(&rx);
	pattern_free(&o.io.pattern);
}

/* The receiver does not wait for dropped frames at the end, and no flow has lost a frame. */
static void nothing_to_wait_for(void)
{
	struct options o = parsed("dpdk-recv", "--peer-acl-drops", "50:10:10000", "--flows", "10");
	struct run r = {.o = &o, .clock = {.hz = 2000000000, .ns_per_cycle = 0.5}};
	struct receiver rx;

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	for (uint64_t i = 0; i < 1000; i++)
		if (!acl_denies_frame(&o.io.peer_acl, &o.io.pattern, i))
			take(&rx, 1, i);
	CHECK(acl_denies_frame(&o.io.peer_acl, &o.io.pattern, 999));
	CHECK(!receiver_done(&rx, 20));
	take(&rx, FRAME_WINDOW_CONTROL, 1001);
	CHECK(receiver_done(&rx, 20));
	summary_has(&rx, "\"gaps\":0");
	summary_has(&rx, "\"lossy_flows\":0");
	summary_has(&rx, "\"highest_sequence\":998");
	summary_has(&rx, "\"peer_acl_drops\":499");
	receiver_free(&rx);
	pattern_free(&o.io.pattern);
}

/* A receiver hears one port, or all ports if the ACL matches ports. */
static void heard(void)
{
	struct options o = parsed("dpdk-recv", "--peer-acl-drops", "50:10:10000", NULL, NULL);
	uint8_t l2[100] = {0};
	uint16_t length;

	frame_write_headers(l2, &o.io.ends, 100);
	for (unsigned any = 0; any < 2; any++) {
		const struct frame_match match =
		        frame_match(&o.io.ends.header, any ? io_heard_port(&o.io) : 9);

		frame_set_target_port(l2, &o.io.ends.header, 9);
		CHECK(frame_parse(l2, 96, &match, &length) != NULL);
		frame_set_target_port(l2, &o.io.ends.header, 10001);
		CHECK((frame_parse(l2, 96, &match, &length) != NULL) == any);
	}
}

static void refusals(void)
{
	static const char *const BAD[] = {"", "30", "30:10", "30:10:", "0:10:9", "100:10:9", "30:0:9",
	        "30:50001:9", "30:3:9", "30:10:0", "30:10:65530", "30:10:9x", "-1:10:9", "x:10:9", "30:x:9",
	        "30 :10:9"};
	static const struct {
		const char *application, *option, *value, *more, *than, *words;
	} REFUSED[] = {
	        {"send", "--acl-drops", "30:10:10000", "-b", "1",
	                "--acl-drops needs -R IF, -X IF or dpdk-send"},
	        {"dpdk-recv", "--acl-drops", "30:10:10000", "-b", "1", "take --peer-acl-drops"},
	        {"dpdk-send", "--peer-acl-drops", "30:10:10000", "-b", "1", "take --acl-drops"},
	        {"dpdk-client", "--acl-drops", "30:10:10000", "-b", "1",
	                "--acl-drops does not apply to dpdk-client"},
	        {"dpdk-server", "--peer-acl-drops", "30:10:10000", "-b", "1",
	                "--peer-acl-drops does not apply to dpdk-server"},
	        {"dpdk-send", "--acl-drops", "30:10:10000", "--fault", "drop:5", "leave one of them out"},
	        {"dpdk-send", "--acl-drops", "30:10:icbench rule ", "-p", "81", "send at least 82 bytes"},
	};
	const char *duplex[] = {"icbench-workload", "dpdk-duplex", ADDRESSES, "--acl-drops", "30:10:1",
	        "--peer-acl-drops", "20:10:1"};
	struct options o;

	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(parse3(&o, "--acl-drops", BAD[i], "-Reth0") == OPTIONS_BAD);
		CHECK_CONTAINS(err, "--acl-drops takes PERCENT:PLACES:MARK, 1 to 99 of up to 50000 places");
	}
	for (unsigned i = 0; i < sizeof(REFUSED) / sizeof(REFUSED[0]); i++) {
		const char *argv[] = {"icbench-workload", REFUSED[i].application, ADDRESSES,
		        REFUSED[i].option, REFUSED[i].value, REFUSED[i].more, REFUSED[i].than};

		CHECK(parse_line(&o, 10, argv) == OPTIONS_BAD);
		CHECK_CONTAINS(err, REFUSED[i].words);
	}
	CHECK(parse_line(&o, 10, duplex) == OPTIONS_RUN);
	CHECK(o.io.acl.percent == 30 && o.io.peer_acl.percent == 20 && o.io.acl.port == 1);
	CHECK(parse3(&o, "--acl-drops", "30:10:icbench rule ", "-Reth0") == OPTIONS_BAD);
	CHECK(parse3(&o, "--acl-drops=30:10:x", "-Reth0", "-p70") == OPTIONS_RUN);
	CHECK(!o.io.acl.port && strcmp(o.io.acl.text, "x") == 0);
}

int main(void)
{
	places(30, 1000);
	places(1, 50000);
	places(99, 7);
	walks(NULL, "30:100:10000", 5000);
	walks("100", "30:10:10000", 5000);
	walks("7", "40:5:10000", 5000);
	walks("1000:zipf", "30:1000:10000", 20000);
	walks("new", "1:100:x", 5000);
	ports();
	texts();
	sender();
	receiver(NULL, "30:20:10000", 100000);
	receiver("20", "30:20:10000", 100000);
	receiver("1000:zipf", "50:10:text", 100000);
	nothing_to_wait_for();
	heard();
	refusals();
	return 0;
}
