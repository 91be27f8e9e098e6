/* SPDX-License-Identifier: BSD-3-Clause */
/* The distance between two CPUs, and how fast each of them works at the moment. */
#ifndef ICBENCH_DISTANCE_H
#define ICBENCH_DISTANCE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* The longest time of one measurement, whatever else runs on the CPUs. */
#define DISTANCE_LIMIT_NS 20000000u

struct distance {
	double ns;         /* round trip of a cache line, fastest round */
	double work_ns[2]; /* a fixed amount of independent instructions on each CPU, fastest piece */
};

/* One end is the calling thread, the other end is the thread `other`, which sleeps between measurements. */
struct distance_meter {
	_Alignas(128) atomic_uint line; /* both ends write it in turn; it has a cache line to itself */
	_Alignas(128) struct clock clock;
	uint64_t until;   /* TSC */
	uint64_t work[2]; /* cycles, fastest piece */
	pthread_t other;
	sem_t begin, done;
	bool out; /* the other thread has not finished: it did not get its CPU */
};

/* Starts the other thread, which lives until the program ends, as m has to. Calibrates the clock for 20 ms.
 * Returns false if no thread can be started. */
bool distance_init(struct distance_meter *m);

/* Measures for about 0.1 ms and leaves the calling thread on CPU a. Returns false if the CPUs are the same,
 * if a thread cannot run on one of them, or after DISTANCE_LIMIT_NS. */
bool distance_measure(struct distance_meter *m, unsigned a, unsigned b, struct distance *d);

#endif
