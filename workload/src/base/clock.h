/* SPDX-License-Identifier: BSD-3-Clause */
/* The time stamp counter, which is the only clock of the data path, and its relation to CLOCK_MONOTONIC. */
#ifndef ICBENCH_CLOCK_H
#define ICBENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

struct clock {
	uint64_t hz; /* TSC cycles per second */
	double ns_per_cycle;
	uint64_t anchor_tsc; /* a moment known on both clocks */
	uint64_t anchor_ns;
};

static inline uint64_t clock_cycles(void)
{
	return __rdtsc();
}

/* Whether the TSC runs at a constant rate in all power states (CPUID 8000_0007h, EDX bit 8). */
bool clock_is_invariant(void);

/* Takes a new anchor. Conversions of times near it then do not accumulate the error of the calibration. */
void clock_anchor(struct clock *clock);

/* Measures the TSC against CLOCK_MONOTONIC from the anchor until now, for at least 20 ms, which limits the
 * error to a few parts per million. Takes a new anchor. */
void clock_calibrate(struct clock *clock);

/* Returns a duration in ns as system calls take it. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

/* Returns CLOCK_MONOTONIC in ns. */
uint64_t clock_monotonic_ns(void);

/* Returns the CPU time of the calling thread in ns. It does not advance while the thread is off the CPU. */
uint64_t clock_thread_ns(void);

uint64_t clock_to_monotonic(const struct clock *clock, uint64_t tsc);
uint64_t clock_from_monotonic(const struct clock *clock, uint64_t ns);
uint64_t clock_ns_to_cycles(const struct clock *clock, double ns);

static inline uint64_t clock_cycles_to_ns(const struct clock *clock, uint64_t cycles)
{
	return (uint64_t)((double)cycles * clock->ns_per_cycle + 0.5);
}

#endif
