/* SPDX-License-Identifier: BSD-3-Clause */
/* Pacing, with a simulated clock. */
#include "traffic/pace.h"

#include <math.h>

#include "check.h"

#define HZ UINT64_C(2000000000)
#define NEVER_GIVE_UP (UINT64_C(1) << 60)

/* Intended times do not drift: burst k is due at start + k * burst / rate, to the cycle, for ever. */
static void no_drift(double rate, unsigned burst)
{
	const uint64_t start = 123456789;
	struct pace p;

	pace_init(&p, HZ, rate, burst, 0, NEVER_GIVE_UP);
	pace_start(&p, start);
	for (uint64_t k = 0; k < 2000000; k++) {
		if (k % 9973 == 0) {
			long double due =
			        (long double)start + (long double)k * burst * HZ / (long double)rate;

			CHECK(fabsl((long double)p.next - due) <= 1.01L);
		}
		pace_next(&p);
	}
}

/* A clock that is polled every 10 cycles sends exactly what was scheduled, never early. */
static void achieved_count(void)
{
	struct pace p;
	struct pace_due due;
	uint64_t frames = 0, now, late = 0;

	pace_init(&p, HZ, 1e6, 32, 0, NEVER_GIVE_UP);
	pace_start(&p, 1000);
	CHECK(!pace_due(&p, 999, &due));
	for (now = 1000; now < 1000 + HZ / 10; now += 10) {
		while (pace_due(&p, now, &due)) {
			CHECK(due.intended <= now);
			CHECK(due.lateness == now - due.intended);
			CHECK_EQUAL(due.due_frames, 32);
			late = due.lateness > late ? due.lateness : late;
			frames += 32;
			pace_next(&p);
		}
	}
	CHECK_EQUAL(frames, 100000 / 32 * 32);
	CHECK(late < 10);
}

static void falling_behind(void)
{
	struct pace p;
	struct pace_due due;
	unsigned bursts = 0;

	pace_init(&p, HZ, 1e6, 10, 0, NEVER_GIVE_UP); /* a burst every 20000 cycles */
	pace_start(&p, 0);
	CHECK(pace_due(&p, 100000, &due)); /* due at 0, 20000, ... 100000 */
	CHECK_EQUAL(due.intended, 0);
	CHECK_EQUAL(due.lateness, 100000);
	CHECK_EQUAL(due.due_frames, 60);
	CHECK(!pace_overdue(&p, 100000));
	while (pace_due(&p, 100000, &due)) {
		CHECK_EQUAL(due.intended, 20000 * bursts);
		bursts++;
		pace_next(&p);
	}
	CHECK_EQUAL(bursts, 6);
}

static void catch_up_cap(void)
{
	struct pace p;
	struct pace_due due;
	unsigned given_up = 0, sent = 0;

	pace_init(&p, HZ, 1e6, 10, 20, NEVER_GIVE_UP);
	pace_start(&p, 0);
	while (pace_overdue(&p, 100000)) {
		given_up += 10;
		pace_next(&p);
	}
	while (pace_due(&p, 100000, &due)) {
		CHECK(due.due_frames <= 20);
		sent += 10;
		pace_next(&p);
	}
	CHECK_EQUAL(given_up, 40);
	CHECK_EQUAL(sent, 20);
	/* A cap below the burst still lets a burst that is on time pass. */
	pace_init(&p, HZ, 1e6, 10, 1, NEVER_GIVE_UP);
	pace_start(&p, 0);
	CHECK(!pace_overdue(&p, 19999));
	CHECK(pace_overdue(&p, 20000));
	CHECK(!pace_overdue(&p, 0));
}

static void backlog(void)
{
	struct pace p;
	struct pace_due due;

	pace_init(&p, HZ, 1e6, 10, 0, 50000);
	pace_start(&p, 0);
	CHECK(!pace_overdue(&p, 50000));
	CHECK(pace_overdue(&p, 50001));
	pace_next(&p);
	CHECK(!pace_overdue(&p, 50001));
	CHECK(pace_due(&p, 50001, &due));
	CHECK_EQUAL(due.intended, 20000);
}

/* Collects the bursts of each second of a trace, which begins `ahead` cycles after the start. */
static void a_trace(void)
{
	static const double RATES[] = {20, 0, 0, 1, 50, 0};
	static const unsigned SENT[] = {10, 20, 0, 0, 10, 50, 0, 0};
	struct pace p;
	struct pace_due due;
	unsigned sent[sizeof(SENT) / sizeof(*SENT)] = {0};

	pace_init(&p, HZ, 10, 10, 0, NEVER_GIVE_UP);
	pace_follow(&p, RATES, sizeof(RATES) / sizeof(*RATES), HZ);
	pace_start(&p, 500);
	for (uint64_t now = 500; now < 500 + 8 * HZ; now += HZ / 1000) {
		while (pace_due(&p, now, &due)) {
			CHECK(now - due.intended < HZ / 1000);
			sent[(due.intended - 500) / HZ] += 10;
			pace_next(&p);
		}
	}
	for (unsigned i = 0; i < sizeof(SENT) / sizeof(*SENT); i++)
		CHECK_EQUAL(sent[i], SENT[i]);
}

static void before_the_start(void)
{
	struct pace p;
	struct pace_due due;

	pace_init(&p, HZ, 1e6, 10, 20, 5000);
	pace_start(&p, 1000000);
	CHECK(!pace_due(&p, 999999, &due));
	CHECK(!pace_overdue(&p, 0));
	CHECK(!pace_overdue(&p, 999999));
	CHECK(pace_due(&p, 1000000, &due));
}

static void the_maximum(void)
{
	struct pace p;
	struct pace_due due;

	pace_init(&p, HZ, 0, 32, 64, 1);
	pace_start(&p, 0);
	for (uint64_t now = 0; now < 1000000; now += 977) {
		CHECK(!pace_overdue(&p, now));
		CHECK(pace_due(&p, now, &due));
		CHECK_EQUAL(due.intended, now);
		CHECK_EQUAL(due.lateness, 0);
		pace_next(&p);
	}
}

int main(void)
{
	no_drift(1e6, 32);
	no_drift(14880952.38, 32);
	no_drift(3, 1);
	no_drift(1e9, 1024);
	no_drift(999983, 7);
	no_drift(1e9, 1);
	achieved_count();
	falling_behind();
	catch_up_cap();
	backlog();
	a_trace();
	before_the_start();
	the_maximum();
	return 0;
}
