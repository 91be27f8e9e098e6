/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <cpuid.h>
#include <time.h>

#define CALIBRATION_NS 20000000u

bool clock_is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

static uint64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Reads both clocks as closely together as eight attempts allow. An interrupt in between would look like
 * drift. */
static void read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t before = clock_cycles();
		uint64_t now = clock_monotonic_ns();
		uint64_t width = clock_cycles() - before;

		if (width < best) {
			best = width;
			*tsc = before + width / 2;
			*ns = now;
		}
	}
}

void clock_anchor(struct clock *clock)
{
	read_both(&clock->anchor_tsc, &clock->anchor_ns);
}

void clock_calibrate(struct clock *clock)
{
	uint64_t tsc = clock->anchor_tsc, ns = clock->anchor_ns, now = clock_monotonic_ns();

	if (now < ns + CALIBRATION_NS) {
		const struct timespec pause = {.tv_nsec = (long)(ns + CALIBRATION_NS - now)};

		nanosleep(&pause, NULL);
	}
	clock_anchor(clock);
	clock->ns_per_cycle = (double)(clock->anchor_ns - ns) / (double)(clock->anchor_tsc - tsc);
	clock->hz = (uint64_t)(1e9 / clock->ns_per_cycle + 0.5);
}

uint64_t clock_to_monotonic(const struct clock *clock, uint64_t tsc)
{
	int64_t distance = (int64_t)(tsc - clock->anchor_tsc);

	return clock->anchor_ns + (uint64_t)(int64_t)((double)distance * clock->ns_per_cycle);
}

uint64_t clock_from_monotonic(const struct clock *clock, uint64_t ns)
{
	int64_t distance = (int64_t)(ns - clock->anchor_ns);

	return clock->anchor_tsc + (uint64_t)(int64_t)((double)distance / clock->ns_per_cycle);
}

uint64_t clock_ns_to_cycles(const struct clock *clock, double ns)
{
	return (uint64_t)(ns / clock->ns_per_cycle + 0.5);
}
