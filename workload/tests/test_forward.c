/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarder over in-memory ports: every frame reaches its port, and none is lost or released twice. */
#include "forward_ports.h"

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
		CHECK_EQUAL(fw.way[port].control, 0); /* frames were not inspected */
	}
	CHECK_EQUAL(fw.moved, 1000);
	CHECK(fw.busy && fw.idle);
	CHECK(fw.empty_polls && fw.empty_polls < fw.polls);
	end();
}

/* Even if the port has room for only part of them, or the frames were impaired. */
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

static void errors_are_reported(void)
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

int main(void)
{
	pairs_of_ports();
	accounts_tell_control_frames_from_data();
	a_full_port_refuses();
	addresses_are_swapped();
	errors_are_reported();
	counters_as_json();
	return 0;
}
