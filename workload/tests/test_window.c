/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/window.h"

#include "check.h"
#include "traffic/pace.h"

#define HZ 1000u

static void warmup_and_windows(void)
{
	struct window_cursor c;

	window_start(&c, 1000, HZ, 0.5, 0.1, 0.25);
	CHECK_EQUAL(c.number, 0);
	CHECK_EQUAL(c.start, 1000);
	CHECK_EQUAL(c.end, 1500);
	CHECK(window_next(&c));
	CHECK_EQUAL(c.number, 1);
	CHECK_EQUAL(c.end, 1600);
	CHECK(window_next(&c));
	CHECK(window_next(&c));
	CHECK_EQUAL(c.number, 3); /* the last one is cut short by the duration */
	CHECK_EQUAL(c.start, 1700);
	CHECK_EQUAL(c.end, 1750);
	CHECK(!window_next(&c));
}

static void without_warmup(void)
{
	struct window_cursor c;

	window_start(&c, 1000, HZ, 0, 0.1, 0.2);
	CHECK_EQUAL(c.number, 1);
	CHECK_EQUAL(c.start, 1000);
	CHECK_EQUAL(c.end, 1100);
	CHECK(window_next(&c));
	CHECK(!window_next(&c));
}

static void number_of_windows(void)
{
	static const struct {
		double length, duration;
		unsigned windows;
	} CASES[] = {{0.1, 0.3, 3}, {0.1, 0.7, 7}, {0.1, 6553.4, 65534}, {0.1, 0.05, 1}, {0.3, 1, 4},
	        {0.001, 1.5, 1500}};

	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct window_cursor c;
		unsigned windows = 1;

		window_start(&c, 7, 2000000149, 0, CASES[i].length, CASES[i].duration);
		while (window_next(&c))
			windows++;
		CHECK_EQUAL(windows, CASES[i].windows);
	}
}

static void until_told_to_stop(void)
{
	struct window_cursor c;
	unsigned windows = 1;

	window_start(&c, 0, HZ, 0, 0.1, 0);
	while (window_next(&c))
		windows++;
	CHECK_EQUAL(windows, FRAME_WINDOW_LAST);
	CHECK_EQUAL(c.end, FRAME_WINDOW_LAST * 100u);
}

/* If rate times window is a multiple of the burst, each window has exactly that many frames at any clock
 * rate. */
static void bursts_a_window(uint64_t hz, double rate, unsigned burst, double length)
{
	const uint64_t expected = (uint64_t)(rate * length / burst + 0.5);
	struct window_cursor c;
	struct pace p;

	pace_init(&p, hz, rate, burst, 0, UINT64_C(1) << 60);
	pace_start(&p, 12345);
	window_start(&c, 12345, hz, 3 * length, length, 200 * length);
	do {
		uint64_t bursts = 0;

		for (; p.next < c.end; pace_next(&p))
			bursts++;
		CHECK_EQUAL(bursts, c.number ? expected : 3 * expected);
	} while (window_next(&c));
}

static void adding(void)
{
	struct window_tx total = {.catch_up_max = 5, .lateness_max_ns = 3},
	                 w = {1, 2, 3, 4, 5, 6, 7, 4, 9, 10, 11, 12, 21, 15, 17, 19,
	                         {13, 14, 15, 16, 17, 18}};
	struct window_rx rx = {.received = 1}, more = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 115,
	                                               {120, 130, 140, 150, 160, 170}};

	window_tx_add(&total, &w);
	window_tx_add(&total, &w);
	CHECK_EQUAL(total.scheduled, 6);
	CHECK_EQUAL(total.sent, 8);
	CHECK_EQUAL(total.refused, 10);
	CHECK_EQUAL(total.not_offered, 12);
	CHECK_EQUAL(total.tx_full, 14);
	CHECK_EQUAL(total.catch_up_max, 5);
	CHECK_EQUAL(total.lateness_max_ns, 10);
	CHECK_EQUAL(total.yields, 22);
	CHECK_EQUAL(total.bursts, 30);
	CHECK_EQUAL(total.full_turns, 34);
	CHECK_EQUAL(total.acl_drops, 38);
	CHECK_EQUAL(total.involuntary_switches, 24);
	CHECK_EQUAL(total.cpu_ns, 42);
	window_rx_add(&rx, &more);
	CHECK_EQUAL(rx.received, 11);
	CHECK_EQUAL(rx.empty_polls, 60);
	CHECK_EQUAL(rx.refused, 80);
	CHECK_EQUAL(rx.involuntary_switches, 110);
	CHECK_EQUAL(rx.cpu_ns, 115);
	CHECK(rx.cycles.busy == 120 && rx.cycles.idle == 130);
	CHECK(rx.cycles.frames == 140 && rx.cycles.gap == 150 && rx.cycles.gaps == 160);
	CHECK_EQUAL(rx.cycles.busy_gap, 170);
	CHECK(total.cycles.busy == 26 && total.cycles.idle == 28);
}

int main(void)
{
	warmup_and_windows();
	without_warmup();
	number_of_windows();
	until_told_to_stop();
	for (uint64_t hz = 1999999983; hz < 2000000020; hz++) {
		bursts_a_window(hz, 20e3, 10, 0.1);
		bursts_a_window(hz, 1e6, 50, 0.1);
		bursts_a_window(hz, 3e5, 30, 0.01);
		bursts_a_window(hz, 7e3, 7, 0.3);
	}
	adding();
	return 0;
}
