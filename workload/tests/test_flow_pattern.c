/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes over a cycle, and headers and lengths of lent frames, by sequence number. */
#include "base/flow_pattern.h"

#include "check.h"
#include "command_line.h"
#include "io/prepare.h"
#include "traffic/sender.h"

#define SIMPLE "64,594,64,64,594,64,1518,64,594,64,64,594"
#define FRAMES 12u

static void sizes_in_turn(void)
{
	struct options o;
	uint64_t bytes = 0;

	CHECK(parse3(&o, "--sizes", SIMPLE, NULL) == OPTIONS_RUN);
	CHECK_EQUAL(o.io.pattern.cycle, FRAMES);
	CHECK_EQUAL(o.io.packet_size, 1518);
	for (uint64_t i = 0; i < 1000; i++) {
		CHECK_EQUAL(pattern_bytes(&o.io.pattern, i, 0), bytes);
		CHECK_EQUAL(pattern_size(&o.io.pattern, 1, i, 0), o.io.pattern.sizes[i % FRAMES]);
		bytes += pattern_size(&o.io.pattern, 1, i, 0);
	}
	CHECK_EQUAL(pattern_bytes(&o.io.pattern, FRAMES, 0), 7 * 64 + 4 * 594 + 1518);
	CHECK_EQUAL(pattern_size(&o.io.pattern, FRAME_WINDOW_CONTROL, 0, o.io.packet_size), 1518);
	CHECK(parse3(&o, "-p", "128", NULL) == OPTIONS_RUN);
	CHECK_EQUAL(pattern_size(&o.io.pattern, 1, 5, o.io.packet_size), 128);
	CHECK_EQUAL(pattern_bytes(&o.io.pattern, 5, o.io.packet_size), 640);
}

static void bad_sizes(void)
{
	static const char *const BAD[] = {
	        "", ",", "64,", ",64", "63", "64,9217", "64;65", "64.5", "64, 65", "x"};
	struct options o;
	char many[8 * PATTERN_CYCLE_MAX];

	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(parse3(&o, "--sizes", BAD[i], NULL) == OPTIONS_BAD);
		CHECK_CONTAINS(err, "up to 1024 whole numbers from 64 to 9216");
	}
	for (unsigned i = 0; i <= PATTERN_CYCLE_MAX; i++)
		memcpy(many + 3 * i, "64,", 4);
	many[3 * PATTERN_CYCLE_MAX - 1] = '\0';
	CHECK(parse3(&o, "--sizes", many, NULL) == OPTIONS_RUN);
	CHECK_EQUAL(o.io.pattern.cycle, PATTERN_CYCLE_MAX);
	many[3 * PATTERN_CYCLE_MAX - 1] = ',';
	many[3 * PATTERN_CYCLE_MAX + 2] = '\0';
	CHECK(parse3(&o, "--sizes", many, NULL) == OPTIONS_BAD);
	/* The last option counts, and nothing of the first remains. */
	CHECK(parse3(&o, "--sizes=1518", "--sizes", "64,65") == OPTIONS_RUN);
	CHECK_EQUAL(o.io.pattern.cycle, 2);
	CHECK_EQUAL(o.io.packet_size, 65);
}

/* A resized frame equals a frame made with that size. */
static void headers_of_any_size(void)
{
	struct options o;
	uint8_t amended[FRAME_HEADER_MAX], made[FRAME_HEADER_MAX];
	uint64_t random = 1;

	CHECK(parse3(&o, NULL, NULL, NULL) == OPTIONS_RUN);
	for (unsigned a = 0; a < 256; a++) {
		const struct frame_header h = {.ipv6 = a & 1, .tcp = a & 2, .vlan = a & 4 ? 4094 : 0};
		const uint32_t least = frame_packet_min(&h);

		o.io.ends.header = h;
		o.io.ends.local_ip.s_addr = (in_addr_t)check_random(&random);
		frame_write_headers(amended, &o.io.ends, least);
		for (uint32_t i = least; i <= FRAME_PACKET_MAX; i++) {
			uint32_t size = i % 2 ? i : FRAME_PACKET_MAX - i + least;

			frame_set_size(amended, &h, size);
			frame_write_headers(made, &o.io.ends, size);
			CHECK(memcmp(amended, made, frame_header_bytes(&h)) == 0);
		}
	}
}

/* A port that records the length of each lent frame and checks its headers when it is taken. */
static struct {
	uint8_t l2[FRAMES][FRAME_PACKET_MAX];
	uint32_t bytes[FRAMES];
	unsigned takes;
	uint64_t taken, taken_bytes;
	const struct options *o;
} port;

static unsigned port_acquire(struct io *io, uint8_t *payload[], unsigned n)
{
	(void)io;
	n = n < FRAMES ? n : FRAMES;
	for (unsigned i = 0; i < n; i++)
		payload[i] = port.l2[i] + frame_header_bytes(&port.o->io.ends.header);
	return n;
}

static void port_resize(struct io *io, unsigned i, uint32_t bytes)
{
	(void)io;
	port.bytes[i] = bytes;
}

static int port_commit(struct io *io, unsigned n)
{
	unsigned taken = n < port.takes ? n : port.takes;

	(void)io;
	for (unsigned i = 0; i < taken; i++) {
		uint16_t length;
		const struct frame_match match =
		        frame_match(&port.o->io.ends.header, port.o->io.ends.udp_port);
		uint8_t *payload = frame_parse(port.l2[i], port.bytes[i], &match, &length);
		struct frame_label label;
		uint32_t size;

		CHECK(payload);
		label = frame_label(payload);
		size = pattern_size(
		        &port.o->io.pattern, label.window, label.sequence, port.o->io.packet_size);
		CHECK_EQUAL(port.bytes[i] + FRAME_FCS_BYTES, size);
		CHECK_EQUAL(length, frame_payload_bytes(&port.o->io.ends.header, size));
		CHECK(frame_checksums_ok(port.l2[i], &port.o->io.ends.header));
		CHECK(!port.o->io.check_payload || frame_padding_ok(payload, length, label.sequence));
		if (label.window == FRAME_WINDOW_CONTROL)
			continue;
		CHECK_EQUAL(label.sequence, port.taken);
		port.taken++;
		port.taken_bytes += size;
	}
	port.takes = port.takes % 7 + 1;
	return (int)taken;
}

static const struct io_ops PORT = {.name = "test",
        .sees_l2 = true,
        .tx_acquire = port_acquire,
        .tx_commit = port_commit,
        .tx_resize = port_resize};

static void ignore(void *context, uint16_t number, const struct window_tx *w)
{
	(void)context;
	(void)number;
	(void)w;
}

/* Refused frames are prepared again when they are offered again: sizes depend on sequence numbers. */
static void sends_a_mix(const char *sizes, const char *more)
{
	struct options o;
	struct sender s;
	struct run r = {.o = &o, .ops = &PORT};

	CHECK(parse3(&o, "--sizes", sizes, more) == OPTIONS_RUN);
	o.count = 1201;
	o.io.burst = 8;
	memset(&port, 0, sizeof(port));
	port.o = &o;
	port.takes = 3;
	for (unsigned i = 0; i < FRAMES; i++)
		frame_write_headers(port.l2[i], &o.io.ends, o.io.packet_size);
	clock_anchor(&r.clock);
	clock_calibrate(&r.clock);
	r.start = clock_cycles();
	CHECK(sender_init(&s, &r, 1, ignore, NULL));
	sender_start(&s);
	while (sender_step(&s) != SENDER_ENDED)
		;
	CHECK_EQUAL(port.taken, 1201);
	CHECK_EQUAL(port.taken_bytes, pattern_bytes(&o.io.pattern, 1201, o.io.packet_size));
	CHECK(run_send_control(&r, 1202));
	sender_free(&s);
}

/* Returns the route of a frame with the headers `h`, from its destination; UINT32_MAX for the peer's address.
 */
static uint32_t route_of(const uint8_t *l2, const struct frame_header *h)
{
	const uint8_t *target = l2 + frame_ip_offset(h) + (h->ipv6 ? 24 : 16);
	uint32_t low = (uint32_t)target[1] << 16 | (uint32_t)target[2] << 8 | target[3];

	if (h->ipv6)
		return target[0] == 0xfd && target[1] == 0x0a && target[15] == 1
		               ? (uint32_t)target[5] << 16 | (uint32_t)target[6] << 8 | target[7]
		               : UINT32_MAX;
	return target[0] == 10 && (low & 15) == 1 && low >> 4 ? low >> 4 : UINT32_MAX;
}

/* Flow k takes route FIRST + k % COUNT, with right checksums; a control frame goes to the peer. */
static void routes(const char *header, const char *frames, const char *value)
{
	const char *argv[] = {"x", "send", ADDRESSES, "-R", "eth0", "--flows", "25", "--routes", "40:7",
	        "--header", header, frames, value};
	uint8_t *payload[FRAMES];
	struct options o;
	uint32_t headers;

	CHECK(parse_line(&o, frames ? 16 : 14, argv) == OPTIONS_RUN);
	o.io.packet_size = 128;
	for (unsigned i = 0; i < o.io.pattern.cycle; i++)
		o.io.pattern.sizes[i] += 64;
	CHECK(pattern_prepare(&o.io.pattern) && prepare_needed(&o.io));
	headers = frame_header_bytes(&o.io.ends.header);
	port.o = &o;
	memset(port.l2, 0, sizeof(port.l2)); /* what is not checked is blank, as the checksum supposes */
	for (unsigned i = 0; i < FRAMES; i++) {
		frame_write_headers(port.l2[i], &o.io.ends, o.io.packet_size);
		payload[i] = port.l2[i] + headers;
	}
	for (uint64_t first = 0; first < 10 * FRAMES; first += FRAMES) {
		prepare_frames(&o.io, &PORT, NULL, payload, FRAMES, first);
		for (unsigned i = 0; i < FRAMES; i++) {
			CHECK_EQUAL(route_of(port.l2[i], &o.io.ends.header),
			        40 + pattern_flow(&o.io.pattern, first + i) % 7);
			prepare_checksum(&o.io, &PORT, payload[i]);
			CHECK(frame_checksums_ok(port.l2[i], &o.io.ends.header));
		}
	}
	prepare_control(&o.io, &PORT, NULL, payload[0]);
	CHECK_EQUAL(route_of(port.l2[0], &o.io.ends.header), UINT32_MAX);
	prepare_checksum(&o.io, &PORT, payload[0]);
	CHECK(frame_checksums_ok(port.l2[0], &o.io.ends.header));
}

static void bad_routes(void)
{
	static const char *const BAD[] = {
	        "", "1", ":1", "1:", "0:0", "1:2:3", "-1:1", "0:1000001", "1:1M", "1.5:2"};
	struct options o;

	for (unsigned i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		CHECK(parse3(&o, "--raw=eth0", "--routes", BAD[i]) == OPTIONS_BAD);
		CHECK_CONTAINS(err, "at least one of routes 0 to 999999");
	}
	CHECK(parse3(&o, "--raw=eth0", "--routes", "0:1M") == OPTIONS_RUN);
	CHECK_EQUAL(o.io.routes.count, PATTERN_ROUTES_MAX);
	CHECK(parse3(&o, "--routes", "0:1", NULL) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "a UDP socket sends to its peer alone");
}

int main(void)
{
	sizes_in_turn();
	bad_sizes();
	headers_of_any_size();
	sends_a_mix(SIMPLE, NULL);
	sends_a_mix(SIMPLE, "-c");
	sends_a_mix("9216,64", "-c");
	routes("udp4", NULL, NULL);
	routes("udp4", "--sizes", "64,128");
	routes("tcp6", "-p", "128");
	bad_routes();
	return 0;
}
