/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarder with delay, drop, duplicate and reorder, over in-memory ports. */
#include "forward_ports.h"

static void delayed_frames_leave_in_order_and_never_early(void)
{
	uint64_t arrived, delay;

	begin((struct options){.delay_us = 2000, .drop_every = 3, .duplicate_every = 4});
	delay = fw.delay;
	CHECK(delay >= clock_ns_to_cycles(&test_run.clock, 2e6));
	supply(0, 100, false);
	arrived = clock_cycles();
	poll_until_quiet();
	/* Frames may be due already if this process was off its CPU; they have left then. */
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

/* In the other direction as well: when a stream ends, its answers end. */
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

/* Two sending ends are independent: the end of one does not restart the other. */
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
	/* The answers to a client have its stream. */
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

int main(void)
{
	delayed_frames_leave_in_order_and_never_early();
	an_overflowing_delay_line_drops();
	an_end_mark_begins_the_pairs_counts_anew();
	an_end_mark_is_of_its_own_stream();
	one_direction_alone();
	a_held_frame_leaves_at_the_end();
	rooms();
	return 0;
}
