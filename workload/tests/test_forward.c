/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarder over ports of memory: who gets what, when, and that no frame is lost or released twice. */
#include "forward/forward.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"
#include "base/frame.h"
#include "check.h"
#include "forward/cost.h"
#include "forward/raw_frame.h"
#include "run/run.h"

#define PORTS 4u
#define POOL 4096u
#define BYTES 60u

struct test_frame {
	int references;
	uint64_t sent_at; /* cycles */
	uint8_t l2[BYTES];
};

/* Each port has a queue in and a queue out. */
struct forward_io {
	struct test_frame *in[PORTS][POOL], *out[PORTS][POOL];
	unsigned ins[PORTS], next[PORTS], outs[PORTS], room[PORTS];
	int failing;
};

static struct test_frame pool[POOL];
static struct forward_io port_io;

static unsigned test_ports(const struct forward_io *io)
{
	(void)io;
	return PORTS;
}

static uint64_t test_missed(struct forward_io *io, unsigned port)
{
	(void)io;
	return port;
}

static int test_rx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	unsigned got = 0;

	if (io->failing) {
		errno = io->failing;
		return -1;
	}
	while (got < n && io->next[port] < io->ins[port])
		frames[got++] = io->in[port][io->next[port]++];
	return (int)got;
}

static void test_release(struct forward_io *io, void *frames[], unsigned n)
{
	(void)io;
	for (unsigned i = 0; i < n; i++) {
		struct test_frame *f = frames[i];

		CHECK(f->references > 0);
		f->references--;
	}
}

static int test_tx(struct forward_io *io, unsigned port, void *frames[], unsigned n)
{
	unsigned taken = 0;

	for (; taken < n && io->outs[port] < io->room[port]; taken++) {
		io->out[port][io->outs[port]] = frames[taken];
		io->out[port][io->outs[port]++]->sent_at = clock_cycles();
	}
	test_release(io, frames, n);
	return (int)taken;
}

static void test_share(void *frame)
{
	((struct test_frame *)frame)->references++;
}

static uint8_t *test_bytes(void *frame, uint32_t *length)
{
	*length = BYTES;
	return ((struct test_frame *)frame)->l2;
}

static const struct forward_ops OPS = {
        .name = "test",
        .ports = test_ports,
        .missed = test_missed,
        .rx = test_rx,
        .tx = test_tx,
        .release = test_release,
        .share = test_share,
        .bytes = test_bytes,
};

static struct run test_run;
static struct options options;
static struct forward fw;

/* Of the frames that are supplied. */
static uint16_t stream = 1;
static uint64_t first_sequence = 1;

/* n frames for a port, the last one an end mark if asked for. */
static void supply(unsigned port, unsigned n, bool end_mark)
{
	static unsigned used;
	struct options o = {.packet_size = BYTES + FRAME_FCS_BYTES, .ends.udp_port = 9};

	memset(o.ends.local_mac, 0xaa, 6);
	memset(o.ends.remote_mac, 0xbb, 6);
	for (unsigned i = 0; i < n; i++) {
		struct test_frame *f = &pool[used++ % POOL];
		uint16_t window = end_mark && i == n - 1 ? FRAME_WINDOW_CONTROL : 1;

		CHECK_EQUAL(f->references, 0);
		f->references = 1;
		frame_write_headers(f->l2, &o.ends, o.packet_size);
		frame_stamp(f->l2 + FRAME_HEADER_BYTES,
		        (struct frame_label){stream, window, first_sequence + i}, 0);
		port_io.in[port][port_io.ins[port]++] = f;
	}
}

static void begin(struct options o)
{
	memset(&port_io, 0, sizeof(port_io));
	for (unsigned i = 0; i < PORTS; i++)
		port_io.room[i] = POOL;
	options = o;
	options.ends.udp_port = 9;
	options.burst = options.burst ? options.burst : 32;
	test_run = (struct run){.o = &options};
	clock_anchor(&test_run.clock);
	clock_calibrate(&test_run.clock);
	CHECK(forward_init(&fw, &test_run, &OPS, &port_io));
}

static void check_accounts(void)
{
	for (unsigned i = 0; i < PORTS; i++) {
		const struct forward_way *w = &fw.way[i];

		CHECK_EQUAL(w->received + w->impair.duplicated,
		        w->sent + w->refused + w->impair.dropped + w->overflow + forward_kept(w));
	}
}

static void poll_until_quiet(void)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (unsigned i = 0; i < PORTS; i++)
			moved |= forward_poll(&fw, &fw.way[i], true);
	}
	check_accounts();
}

/* Ends; every frame has been released as often as there were references. */
static void end(void)
{
	forward_free(&fw);
	for (unsigned i = 0; i < POOL; i++)
		CHECK_EQUAL(pool[i].references, 0);
	json_free(&test_run.json);
}

static void pairs_of_ports(void)
{
	static const unsigned PEER[PORTS] = {1, 0, 3, 2};

	begin((struct options){0});
	for (unsigned port = 0; port < PORTS; port++)
		supply(port, 100 * (port + 1), true);
	poll_until_quiet();
	for (unsigned port = 0; port < PORTS; port++) {
		CHECK_EQUAL(port_io.outs[port], port_io.ins[PEER[port]]);
		for (unsigned i = 0; i < port_io.outs[port]; i++)
			CHECK(port_io.out[port][i] == port_io.in[PEER[port]][i]);
		CHECK_EQUAL(fw.way[port].received, 100 * (port + 1));
		CHECK_EQUAL(fw.way[port].sent, 100 * (port + 1));
		CHECK_EQUAL(fw.way[port].control, 0); /* nobody looked */
	}
	CHECK_EQUAL(fw.moved, 1000);
	CHECK(fw.busy && fw.idle);
	CHECK(fw.empty_polls && fw.empty_polls < fw.polls);
	end();
}

/* Also where the port has room for a part of them only, or the frames were impaired. */
static void accounts_tell_control_frames_from_data(void)
{
	begin((struct options){.accounts = true});
	port_io.room[1] = 25;
	supply(0, 10, true);
	supply(0, 10, true);
	supply(0, 10, true);
	supply(2, 10, false);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[0].control, 3);
	CHECK_EQUAL(fw.way[0].sent, 25);
	CHECK_EQUAL(fw.way[0].control_sent, 2);
	CHECK_EQUAL(fw.way[2].control + fw.way[2].control_sent, 0);
	json_begin_line(&test_run.json, "counters");
	forward_counters(&fw);
	json_end_line(&test_run.json);
	test_run.json.text[test_run.json.length - 1] = 0;
	CHECK_CONTAINS(test_run.json.text, "\"rx\":30,\"missed\":0,\"control\":3,");
	CHECK_CONTAINS(test_run.json.text, "\"tx\":25,\"refused\":5,\"tx_control\":2}");
	end();
	begin((struct options){.accounts = true, .drop_every = 4});
	supply(0, 9, true);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[0].control, 1);
	CHECK_EQUAL(fw.way[0].control_sent, 1);
	CHECK_EQUAL(fw.way[0].sent, 7);
	end();
}

static void a_full_port_refuses(void)
{
	begin((struct options){0});
	port_io.room[1] = 70;
	supply(0, 100, false);
	supply(1, 5, false);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[0].sent, 70);
	CHECK_EQUAL(fw.way[0].refused, 30);
	CHECK_EQUAL(fw.way[1].sent, 5);
	CHECK_EQUAL(fw.way[1].refused, 0);
	end();
}

static void addresses_are_swapped(void)
{
	begin((struct options){.swap = true});
	supply(2, 3, true);
	poll_until_quiet();
	for (unsigned i = 0; i < 3; i++) {
		const uint8_t *l2 = port_io.out[3][i]->l2;

		CHECK(l2[0] == 0xaa && l2[5] == 0xaa && l2[6] == 0xbb && l2[11] == 0xbb && l2[12] == 0x08);
	}
	end();
}

static void delayed_frames_leave_in_order_and_never_early(void)
{
	uint64_t arrived, delay;

	begin((struct options){.delay_us = 2000, .drop_every = 3, .duplicate_every = 4});
	delay = fw.delay;
	CHECK(delay >= clock_ns_to_cycles(&test_run.clock, 2e6));
	supply(0, 100, false);
	arrived = clock_cycles();
	poll_until_quiet();
	/* Frames may be due already if this was taken off the CPU: then they have left. */
	while (forward_kept(&fw.way[0])) {
		forward_poll(&fw, &fw.way[0], true);
		check_accounts();
	}
	CHECK_EQUAL(port_io.outs[1], 67 + 16);
	for (unsigned i = 0; i < port_io.outs[1]; i++) {
		CHECK((int64_t)(port_io.out[1][i]->sent_at - arrived - delay) >= 0);
		CHECK(!i || port_io.out[1][i] >= port_io.out[1][i - 1] ||
		        port_io.out[1][i] == &pool[0]); /* the pool is a ring */
	}
	end();
}

static void an_overflowing_delay_line_drops(void)
{
	begin((struct options){.delay_us = 1e7, .delay_queue = 50});
	supply(0, 70, false);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[0].overflow, 20);
	CHECK_EQUAL(forward_kept(&fw.way[0]), 50);
	CHECK_EQUAL(port_io.outs[1], 0);
	end();
}

/* Also in the other direction: the answers to what has ended have ended. */
static void an_end_mark_begins_the_pairs_counts_anew(void)
{
	begin((struct options){.drop_every = 10});
	supply(1, 9, false);
	supply(3, 9, false);
	poll_until_quiet();
	supply(0, 1, true);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[0].control, 1);
	supply(1, 9, false);
	supply(3, 9, false);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[1].impair.dropped, 0);
	CHECK_EQUAL(fw.way[3].impair.dropped, 1); /* another pair */
	end();
}

/* Two ends that both send are no pair of requests and answers: each ends by itself. */
static void an_end_mark_is_of_its_own_stream(void)
{
	begin((struct options){.drop_every = 10});
	stream = 257;
	first_sequence = 0;
	supply(1, 9, false);
	poll_until_quiet();
	stream = first_sequence = 1;
	supply(0, 1, true);
	poll_until_quiet();
	supply(1, 1, false);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[1].impair.dropped, 1);
	/* The answers to a client are of its stream. */
	first_sequence = 0;
	supply(1, 9, false);
	poll_until_quiet();
	first_sequence = 1;
	supply(0, 1, true);
	poll_until_quiet();
	supply(1, 1, false);
	poll_until_quiet();
	CHECK_EQUAL(fw.way[1].impair.dropped, 1);
	end();
}

static void one_direction_alone(void)
{
	for (uint32_t only = 0; only <= 2; only++) {
		begin((struct options){.drop_every = 10, .duplicate_every = 9, .only = only});
		for (unsigned port = 0; port < PORTS; port++)
			supply(port, 20, false);
		poll_until_quiet();
		for (unsigned port = 0; port < PORTS; port++) {
			bool struck = !only || port % 2 == only - 1;

			CHECK_EQUAL(fw.way[port].impair.dropped, struck ? 2 : 0);
			CHECK_EQUAL(fw.way[port].impair.duplicated, struck ? 2 : 0);
		}
		check_accounts();
		end();
	}
}

static void a_held_frame_leaves_at_the_end(void)
{
	begin((struct options){.reorder_every = 5});
	supply(0, 5, false);
	poll_until_quiet();
	CHECK_EQUAL(port_io.outs[1], 4);
	CHECK_EQUAL(forward_kept(&fw.way[0]), 1);
	forward_end(&fw);
	CHECK_EQUAL(port_io.outs[1], 5);
	CHECK_EQUAL(fw.way[0].impair.reordered, 0);
	check_accounts();
	supply(0, 5, false);
	poll_until_quiet();
	end(); /* one is held, and released */
}

static void rooms(void)
{
	CHECK_EQUAL(forward_delay_room(&(struct options){0}), 0);
	CHECK_EQUAL(forward_delay_room(&(struct options){.delay_queue = 7}), 0);
	CHECK_EQUAL(forward_delay_room(&(struct options){.delay_us = 1}), 1024);
	CHECK_EQUAL(forward_delay_room(&(struct options){.delay_us = 1000}), 10000);
	CHECK_EQUAL(forward_delay_room(&(struct options){.delay_us = 1e6}), 65536);
	CHECK_EQUAL(forward_delay_room(&(struct options){.delay_us = 1, .delay_queue = 7}), 7);
}

static void errors_are_told(void)
{
	begin((struct options){0});
	port_io.failing = ENETDOWN;
	CHECK(!forward_poll(&fw, &fw.way[0], true));
	CHECK(test_run.error.call && test_run.error.number == ENETDOWN);
	CHECK(!forward_poll(&fw, &fw.way[0], false));
	end();
}

static void counters_as_json(void)
{
	begin((struct options){.drop_every = 2});
	supply(0, 10, true);
	poll_until_quiet();
	json_begin_line(&test_run.json, "counters");
	forward_counters(&fw);
	json_end_line(&test_run.json);
	test_run.json.text[test_run.json.length - 1] = 0;
	CHECK_CONTAINS(test_run.json.text,
	        "\"ports\":[{\"port\":0,\"rx\":10,\"missed\":0,\"control\":1,\"dropped\":4,\"duplicated\":0,"
	        "\"reordered\":0,\"overflow\":0,\"kept\":0,\"tx\":0,\"refused\":0,\"tx_control\":null},"
	        "{\"port\":1,\"rx\":0,\"missed\":1,");
	CHECK_CONTAINS(test_run.json.text, "\"tx\":6,\"refused\":0,\"tx_control\":null}");
	end();
}

/* At least what was asked for, to within what is settled with the next call; at most is a matter of the
 * machine. */
static void costs_add_up(void)
{
	struct cost c;
	uint64_t start;

	cost_init(&c, 700);
	CHECK(c.cycles == 700 && c.owed == 0);
	start = clock_cycles();
	for (unsigned i = 1; i <= 1000; i++)
		cost_spend(&c, i % 33);
	CHECK((int64_t)(clock_cycles() - start) + c.outside * 1000 >= 700 * 15984 - 1000);
	cost_init(&c, 1);
	for (unsigned i = 0; i < 1000; i++)
		cost_spend(&c, 1);
	CHECK(c.owed <= c.outside && c.owed >= -400);
}

static volatile uint64_t away;

static void go_away(int number)
{
	uint64_t start = clock_cycles();

	(void)number;
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	away += clock_cycles() - start;
}

/* A handler that sleeps stands for another task. */
static void time_of_others_is_not_spent(void)
{
	const struct itimerval each = {{0, 3000}, {0, 3000}}, none = {{0, 0}, {0, 0}};
	struct cost c;
	uint64_t start;

	cost_init(&c, 40000000);
	signal(SIGALRM, go_away);
	CHECK(!setitimer(ITIMER_REAL, &each, NULL));
	start = clock_cycles();
	cost_spend(&c, 1);
	start = clock_cycles() - start;
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
	CHECK(away > 0);
	CHECK(start + 400 >= 40000000 + away);
}

static void a_vlan_tag_is_put_back(void)
{
	struct raw_pool frames;
	struct raw_frame *f;
	struct virtio_net_hdr header = {
	        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 6};
	uint8_t *l2;

	CHECK(raw_pool_init(&frames, 3, 1518));
	CHECK_EQUAL(frames.left, 3);
	f = raw_frame_take(&frames);
	f->start = RAW_ROOM_BYTES - RAW_HEADER_BYTES;
	f->length = BYTES;
	memcpy(f->data + f->start, &header, sizeof(header));
	for (unsigned i = 0; i < BYTES; i++)
		f->data[RAW_ROOM_BYTES + i] = (uint8_t)i;
	raw_frame_tag(f, 0x88a8, 0x3123);
	CHECK_EQUAL(f->length, BYTES + 4);
	memcpy(&header, f->data + f->start, sizeof(header));
	CHECK_EQUAL(header.csum_start, 38);
	CHECK_EQUAL(header.csum_offset, 6);
	l2 = f->data + f->start + RAW_HEADER_BYTES;
	CHECK(memcmp(l2 + 12, "\x88\xa8\x31\x23", 4) == 0);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK_EQUAL(l2[i < 12 ? i : i + 4], i);
	f->references++;
	raw_frame_release(&frames, f);
	CHECK_EQUAL(frames.left, 2);
	raw_frame_release(&frames, f);
	CHECK_EQUAL(frames.left, 3);
	raw_pool_free(&frames);
}

int main(void)
{
	pairs_of_ports();
	accounts_tell_control_frames_from_data();
	a_full_port_refuses();
	addresses_are_swapped();
	delayed_frames_leave_in_order_and_never_early();
	an_overflowing_delay_line_drops();
	an_end_mark_begins_the_pairs_counts_anew();
	an_end_mark_is_of_its_own_stream();
	one_direction_alone();
	a_held_frame_leaves_at_the_end();
	rooms();
	errors_are_told();
	counters_as_json();
	costs_add_up();
	time_of_others_is_not_spent();
	a_vlan_tag_is_put_back();
	return 0;
}
