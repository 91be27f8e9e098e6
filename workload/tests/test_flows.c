/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the flow of each frame, its headers, and the receiver's accounts of each flow. */
#include "traffic/flows.h"

#include <math.h>

#include "check.h"
#include "command_line.h"
#include "io/prepare.h"
#include "traffic/receiver.h"

static struct options flows_of(const char *flows, const char *sizes)
{
	const char *argv[] = {"icbench-workload", "dpdk-send", ADDRESSES, "--flows", flows, "--sizes", sizes};
	struct options o;

	CHECK(parse_line(&o, sizes ? 10 : 8, argv) == OPTIONS_RUN);
	CHECK(pattern_prepare(&o.io.pattern));
	return o;
}

/* Advancing a place equals computing it, and each flow has its turn. */
static void in_turn(const char *text, const char *sizes)
{
	struct options o = flows_of(text, sizes);
	const struct flow_pattern *s = &o.io.pattern;
	struct pattern_place at = pattern_place(s, 0);
	uint64_t frames = UINT64_C(3) * s->flows * (s->cycle ? s->cycle : 1);
	uint32_t *counts = calloc((size_t)s->flows * PATTERN_CYCLE_MAX, sizeof(*counts));

	CHECK(counts);
	for (uint64_t i = 0; i < frames; i++) {
		uint32_t flow = pattern_next_flow(s, &at);

		CHECK_EQUAL(flow, pattern_flow(s, i));
		counts[flow * (s->cycle ? s->cycle : 1) + (s->cycle ? i % s->cycle : 0)]++;
	}
	/* Enough frames that each flow has had each place of the cycle three times. */
	for (uint64_t i = 0; i < frames / 3; i++)
		CHECK_EQUAL(counts[i], 3);
	free(counts);
	pattern_free(&o.io.pattern);
}

/* Flow k has its share after a few hundred of its frames. */
static void by_zipf(const char *text, uint64_t frames)
{
	struct options o = flows_of(text, NULL);
	const struct flow_pattern *s = &o.io.pattern;
	uint32_t *counts = calloc(s->flows, sizeof(*counts));
	struct pattern_place at = pattern_place(s, 0);
	double sum = 0;

	CHECK(counts);
	for (uint32_t k = 1; k <= s->flows; k++)
		sum += 1.0 / k;
	for (uint64_t i = 0; i < frames; i++) {
		uint32_t flow = pattern_next_flow(s, &at);

		CHECK(flow < s->flows);
		CHECK(i % 1000 || flow == pattern_flow(s, i));
		counts[flow]++;
	}
	for (uint32_t k = 0; k < s->flows; k++) {
		double expected = (double)frames / (sum * (k + 1));

		CHECK(expected < 1000 || (counts[k] > 0.9 * expected && counts[k] < 1.1 * expected));
	}
	free(counts);
	pattern_free(&o.io.pattern);
}

/* Each frame has a unique address and port, and control frames have the endpoint's. */
static void all_new(void)
{
	static const struct io_ops OPS = {.sees_l2 = true};
	static const struct {
		uint64_t sequence;
		uint32_t address;
		uint16_t port;
	} EXPECTED[] = {{1, 0x64400001, 1024}, {0x3fffff, 0x647fffff, 1024}, {0x400000, 0x64400000, 1025},
	        {0xfffffffe, 0x647ffffe, 2047}, {(uint64_t)UINT32_MAX + 1, 0x64400001, 1024}};
	struct options o = flows_of("new", "64,570");
	uint8_t l2[600] = {0}, *payload = l2 + frame_header_bytes(&o.io.ends.header);

	CHECK(pattern_has_flows(&o.io.pattern) && !pattern_flows_recur(&o.io.pattern));
	frame_write_headers(l2, &o.io.ends, o.io.packet_size);
	for (unsigned i = 0; i < sizeof(EXPECTED) / sizeof(EXPECTED[0]); i++) {
		prepare_frames(&o.io, &OPS, NULL, &payload, 1, EXPECTED[i].sequence);
		prepare_checksum(&o.io, &OPS, payload);
		CHECK(frame_checksums_ok(l2, &o.io.ends.header));
		CHECK_EQUAL(l2[26] << 24 | l2[27] << 16 | l2[28] << 8 | l2[29], EXPECTED[i].address);
		CHECK_EQUAL(l2[34] << 8 | l2[35], EXPECTED[i].port);
	}
	prepare_control(&o.io, &OPS, NULL, payload);
	CHECK_EQUAL(l2[34] << 8 | l2[35], o.io.ends.udp_port);
	CHECK(memcmp(l2 + 26, &o.io.ends.local_ip, 4) == 0);
	pattern_free(&o.io.pattern);
}

static void bad_flows(void)
{
	static const char *const BAD[] = {"", "0", "1000001", "1.5", "64:", "64:port", "64:zipf:ports",
	        "64:ports:", "64:ports:zip", ":ports", "64 ", "x", "new:zipf", "news"};
	const char *argv[] = {"icbench-workload", "dpdk-client", ADDRESSES, "--flows", "8:ports"};
	struct options o;

	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(parse3(&o, "--flows", BAD[i], NULL) == OPTIONS_BAD);
		CHECK_CONTAINS(
		        err, "a whole number from 1 to 1000000, followed by :addresses, :ports or :macs");
	}
	CHECK(parse3(&o, "--flows", "2", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "a UDP socket has one flow");
	CHECK(parse3(&o, "--flows", "1", NULL) == OPTIONS_RUN);
	CHECK(!prepare_needed(&o.io));
	CHECK(parse3(&o, "--flows=64513:ports", "-R", "eth0") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "more than there are ports; take at most 64512");
	CHECK(parse3(&o, "--flows=64k:ports:zipf", "-R", "eth0") == OPTIONS_RUN);
	CHECK(o.io.pattern.flows == 64000 && o.io.pattern.field == PATTERN_PORTS && o.io.pattern.zipf);
	CHECK(parse3(&o, "--flows=1M:macs", "-R", "eth0") == OPTIONS_RUN);
	CHECK(o.io.pattern.flows == 1000000 && o.io.pattern.field == PATTERN_MACS && !o.io.pattern.zipf);
	CHECK(parse_line(&o, 8, argv) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "vary addresses or macs");
}

static void bad_queues(void)
{
	const char *dpdk[] = {"icbench-workload", "dpdk-duplex", ADDRESSES, "--queues", "16"};
	const char *capture[] = {"icbench-workload", "dpdk-capture", "x.pcap", "--queues", "2"};
	const char *forward[] = {"icbench-workload", "dpdk-forward", "--queues", "2"};
	struct options o;

	CHECK(parse_line(&o, 8, dpdk) == OPTIONS_RUN);
	CHECK_EQUAL(o.io.queues, 16);
	dpdk[7] = "17";
	CHECK(parse_line(&o, 8, dpdk) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--queues takes a whole number from 1 to 16, not '17'");
	CHECK(parse3(&o, "--queues", "1", NULL) == OPTIONS_RUN);
	CHECK(parse3(&o, "--queues=2", "-R", "eth0") == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--queues 2");
	CHECK(parse_line(&o, 5, capture) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "dpdk-capture has one queue");
	CHECK(parse_line(&o, 4, forward) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "dpdk-forward has one queue");
}

/* Frames of different flows differ, frames of one flow do not, and all are valid. */
static void headers_with(const char *header, const char *text, unsigned offset, unsigned length)
{
	static const struct io_ops OPS = {.sees_l2 = true};
	const char *argv[] = {
	        "icbench-workload", "dpdk-send", ADDRESSES, "--header", header, "--flows", text, "-p", "100"};
	struct options o;
	uint8_t l2[100] = {0}, plain[100] = {0}, seen[2][16];
	uint32_t header_bytes;
	struct frame_match match;
	uint8_t *payload;

	CHECK(parse_line(&o, 12, argv) == OPTIONS_RUN);
	CHECK(pattern_prepare(&o.io.pattern));
	header_bytes = frame_header_bytes(&o.io.ends.header);
	match = frame_match(&o.io.ends.header, o.io.ends.udp_port);
	payload = l2 + header_bytes;
	frame_write_headers(plain, &o.io.ends, o.io.packet_size);
	memcpy(l2, plain, sizeof(l2));
	for (uint64_t i = 0; i < 3 * o.io.pattern.flows; i++) {
		uint16_t payload_len;

		prepare_frames(&o.io, &OPS, NULL, &payload, 1, i);
		prepare_checksum(&o.io, &OPS, payload);
		CHECK(frame_parse(l2, o.io.packet_size - FRAME_FCS_BYTES, &match, &payload_len) == payload);
		CHECK(frame_checksums_ok(l2, &o.io.ends.header));
		if (i % o.io.pattern.flows < 2) {
			if (i >= o.io.pattern.flows)
				CHECK(memcmp(seen[i % o.io.pattern.flows], l2 + offset, length) == 0);
			memcpy(seen[i % o.io.pattern.flows], l2 + offset, length);
		}
		CHECK((memcmp(l2 + offset, plain + offset, length) == 0) == (i % o.io.pattern.flows == 0));
	}
	CHECK(memcmp(seen[0], seen[1], length) != 0);
	prepare_control(&o.io, &OPS, NULL, payload);
	CHECK(memcmp(l2 + offset, plain + offset, length) == 0);
	pattern_free(&o.io.pattern);
}

static void headers(const char *text, unsigned offset, unsigned length)
{
	headers_with("udp4", text, offset, length);
}

/* Headers are right whatever flows the buffers had before. */
static void bursts(const char *text, const char *sizes)
{
	static const struct io_ops OPS = {.sees_l2 = true};
	struct options o = flows_of(text, sizes);
	uint8_t l2[8][600] = {{0}}, wanted[600] = {0}, *payload[8], *one;
	uint32_t header = frame_header_bytes(&o.io.ends.header);

	one = wanted + header;
	frame_write_headers(wanted, &o.io.ends, o.io.packet_size);
	for (unsigned i = 0; i < 8; i++) {
		payload[i] = l2[i] + header;
		memcpy(l2[i], wanted, sizeof(wanted));
	}
	for (uint64_t first = 0; first < 2000; first += 1 + first % 13) {
		unsigned n = 1 + first % 8;

		prepare_frames(&o.io, &OPS, NULL, payload + 8 - n, n, first);
		for (unsigned i = 0; i < n; i++) {
			prepare_frames(&o.io, &OPS, NULL, &one, 1, first + i);
			CHECK(memcmp(payload[8 - n + i] - header, wanted, header) == 0);
			CHECK(frame_checksums_ok(wanted, &o.io.ends.header));
		}
	}
	pattern_free(&o.io.pattern);
}

static void take(struct receiver *rx, uint64_t sequence)
{
	uint8_t payload[FRAME_STAMP_BYTES];
	struct io_frame f = {.payload = payload, .payload_len = sizeof(payload), .frame_len = 64};

	frame_stamp(payload, (struct frame_label){rx->r->o->io.stream_id, 1, sequence}, 1);
	receiver_take(rx, &f, 1, 10, NULL);
}

/* Sends frames pairwise exchanged, `distance` apart. */
static uint64_t reordered(const char *flows, unsigned distance)
{
	struct options o = flows_of(flows, NULL);
	struct run r = {.o = &o, .clock = {.hz = 2000000000, .ns_per_cycle = 0.5}};
	struct receiver rx;
	uint64_t found;

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	for (uint64_t block = 0; block < 100; block++)
		for (unsigned i = 0; i < 2 * distance; i++)
			take(&rx, block * 2 * distance + (i + distance) % (2 * distance));
	CHECK_EQUAL(rx.received, 200 * distance);
	CHECK_EQUAL(tracker_gaps(rx.tracker), 0);
	found = rx.windows[1].reordered;
	receiver_free(&rx);
	pattern_free(&o.io.pattern);
	return found;
}

/* A loss of one flow's frames is found in that flow, even at the end and far ahead. */
static void losses_by_flow(const char *text, uint64_t frames, uint32_t dropped)
{
	struct options o = flows_of(text, NULL);
	struct run r = {.o = &o, .clock = {.hz = 2000000000, .ns_per_cycle = 0.5}};
	struct receiver rx;
	struct json j = {0};
	uint64_t lost = 0;
	char expected[128];

	CHECK(receiver_init(&rx, &r, NULL, NULL));
	for (uint64_t i = 0; i < frames; i++) {
		if (pattern_flow(&o.io.pattern, i) == dropped)
			lost++;
		else
			take(&rx, i);
	}
	rx.end_mark = frames + 1;
	json_begin_line(&j, "summary");
	receiver_summary(&rx, &j);
	json_end_line(&j);
	snprintf(expected, sizeof(expected), "\"lossy_flows\":1,\"worst_flows\":[[%u,%" PRIu64 "]]", dropped,
	        lost);
	CHECK_CONTAINS(j.text, expected);
	CHECK_EQUAL(rx.flows.lost[dropped], lost);
	json_free(&j);
	receiver_free(&rx);
	pattern_free(&o.io.pattern);
}

static uint64_t lost_together(const struct flows *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->pattern->flows; i++)
		sum += f->lost[i];
	return sum;
}

/* Consecutive losses equal losses one by one. */
static void losses_in_a_row(const char *text, const char *sizes)
{
	struct options o = flows_of(text, sizes);
	struct flows row, single;
	uint64_t random = 7;

	CHECK(flows_init(&row, &o.io.pattern, &o.io.acl) && flows_init(&single, &o.io.pattern, &o.io.acl));
	for (unsigned round = 0; round < 300; round++) {
		uint64_t first = check_random(&random) >> 16, n = check_random(&random) % 5000;

		flows_note_lost(&row, first, n);
		for (uint64_t i = 0; i < n; i++)
			flows_note_lost(&single, first + i, 1);
	}
	CHECK(memcmp(row.lost, single.lost, o.io.pattern.flows * sizeof(*row.lost)) == 0);
	flows_free(&row);
	flows_free(&single);
	pattern_free(&o.io.pattern);
}

/* One frame, or one end mark, of the largest number: 2^48 losses take no longer than a million. */
static void a_leap_across_all_numbers(const char *text, const char *sizes)
{
	struct options o = flows_of(text, sizes);
	struct run r = {.o = &o, .clock = {.hz = 2000000000, .ns_per_cycle = 0.5}};
	const uint64_t last = (UINT64_C(1) << 48) - 1;
	struct receiver rx;
	struct json j = {0};

	for (unsigned marked = 0; marked < 2; marked++) {
		CHECK(receiver_init(&rx, &r, NULL, NULL));
		take(&rx, 5);
		if (marked)
			rx.end_mark = last + 1;
		else
			take(&rx, last);
		json_begin_line(&j, "summary");
		receiver_summary(&rx, &j);
		json_end_line(&j);
		CHECK_EQUAL(lost_together(&rx.flows), last - 1);
		if (o.io.pattern.zipf && o.io.pattern.flows == 4) {
			double share = 1 / (1 + 1 / 2. + 1 / 3. + 1 / 4.);

			CHECK(fabs((double)rx.flows.lost[0] / (double)last - share) < 1e-6);
		}
		json_free(&j);
		receiver_free(&rx);
	}
	pattern_free(&o.io.pattern);
}

int main(void)
{
	in_turn("7", NULL);
	in_turn("1000", NULL);
	in_turn("64", "64,64,64,128,128,1518,64,64,64,128,128,64");
	in_turn("12", "64,64,64,128,128,1518,64,64,64,128,128,64");
	in_turn("7", "64,65,66");
	by_zipf("2:zipf", 100000);
	by_zipf("1000:zipf", 3000000);
	by_zipf("1M:zipf", 3000000);
	all_new();
	bad_flows();
	bad_queues();
	headers("1000", 26, 4);
	headers("64512:ports", 34, 2);
	headers("70k:macs", 6, 6);
	headers_with("tcp4+vlan7", "1000", 30, 4);
	headers_with("udp6", "1000", 22, 16);
	headers_with("tcp6", "1000:ports", 54, 2);
	headers_with("udp6+vlan4094", "300:macs", 6, 6);
	bursts("300", NULL);
	bursts("300", "64,570");
	bursts("new", NULL);
	bursts("300:ports:zipf", NULL);
	/* Frames exchanged across flows are not reordered; within a flow the second half of each block is. */
	CHECK_EQUAL(reordered("2", 1), 0);
	CHECK_EQUAL(reordered("8", 4), 0);
	CHECK_EQUAL(reordered("4", 4), 400);
	CHECK_EQUAL(reordered("2", 4), 400);
	CHECK_EQUAL(reordered("1", 4), 400);
	CHECK_EQUAL(reordered("new", 4), 0);
	losses_by_flow("10", 100, 9);
	losses_by_flow("10", 5000000, 3);
	losses_by_flow("1000:zipf", 3000000, 17);
	losses_in_a_row("7", NULL);
	losses_in_a_row("12", "64,64,64,128,128,1518,64,64,64,128,128,64");
	losses_in_a_row("10", "64,65,66,67");
	losses_in_a_row("10:zipf", NULL);
	a_leap_across_all_numbers("7", NULL);
	a_leap_across_all_numbers("12", "64,64,64,128,128,1518,64,64,64,128,128,64");
	a_leap_across_all_numbers("4:zipf", NULL);
	a_leap_across_all_numbers("1M:zipf", NULL);
	return 0;
}
