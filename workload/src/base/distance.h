/* SPDX-License-Identifier: BSD-3-Clause */
/* How far two CPUs are from each other, and how fast each of them works at that moment. */
#ifndef ICBENCH_DISTANCE_H
#define ICBENCH_DISTANCE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* The longest time of one measurement, whoever else has the CPUs. */
#define DISTANCE_LIMIT_NS 20000000u

struct distance {
	double ns;         /* a cache line from the one CPU to the other and back, at best */
	double work_ns[2]; /* a fixed piece of independent instructions on each, at best */
};

/* The calling thread is the one end, and `other` the other one; it sleeps between measurements. */
struct distance_meter {
	_Alignas(128) atomic_uint line; /* what both write in turn, alone in its cache line */
	_Alignas(128) struct clock clock;
	uint64_t until;   /* TSC */
	uint64_t work[2]; /* cycles, at best */
	pthread_t other;
	sem_t begin, done;
	bool out; /* the other thread has not come back yet: it was kept from its CPU */
};

/* Starts the other thread, which stays until the program ends, as m has to; and calibrates the clock for 20
 * ms. False if there is no thread to be had. */
bool distance_init(struct distance_meter *m);

/* Measures for some 0.1 ms, and leaves the calling thread on CPU a. False if the CPUs are one and the same,
 * if a thread cannot run on one of them, or if DISTANCE_LIMIT_NS have passed. */
bool distance_measure(struct distance_meter *m, unsigned a, unsigned b, struct distance *d);

#endif
