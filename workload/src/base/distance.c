/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/distance.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#define ROUNDS 8u
#define BOUNCES 64u /* in a round */
#define PIECES 8u
#define STEPS 1024u /* in a piece of work; about four cycles each */
/* Polls between two looks at the clock, which would take cycles from polling. */
#define SPINS 256u

/* Eight independent chains, which use all execution units of the core. A single chain would not notice a
 * hyper-thread sibling, which takes only what the chain leaves unused. */
static uint64_t work(uint64_t x)
{
	uint64_t a = x, b = x + 1, c = x + 2, d = x + 3, e = x + 4, f = x + 5, g = x + 6, h = x + 7;

	for (unsigned i = 0; i < STEPS; i++) {
#define STEP(v) v = (v << 7 | v >> 57) + x
		STEP(a), STEP(b), STEP(c), STEP(d), STEP(e), STEP(f), STEP(g), STEP(h);
#undef STEP
		/* Keeps the compiler from vectorizing them. */
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

static uint64_t least_work(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < PIECES; i++) {
		uint64_t before = clock_cycles(), took;
		volatile uint64_t result = work(before);

		(void)result;
		took = clock_cycles() - before;
		least = took < least ? took : least;
	}
	return least;
}

/* Waits until the line has a value. Returns false on timeout. */
static bool line_is(struct distance_meter *m, unsigned value)
{
	for (unsigned spins = 1; atomic_load_explicit(&m->line, memory_order_acquire) != value; spins++)
		if (spins % SPINS == 0 && clock_cycles() > m->until)
			return false;
	return true;
}

/* The answering end: makes each odd value even. */
static void answer(struct distance_meter *m)
{
	for (unsigned value = 1; value < 2 * (ROUNDS + 1) * BOUNCES; value += 2) {
		if (!line_is(m, value))
			return;
		atomic_store_explicit(&m->line, value + 1, memory_order_release);
	}
	m->work[1] = least_work();
}

static void *other(void *meter)
{
	struct distance_meter *m = meter;

	while (sem_wait(&m->begin) == 0) {
		answer(m);
		sem_post(&m->done);
	}
	return NULL;
}

/* The asking end. Returns the cycles of the fastest round, 0 on timeout. The first round, in which the other
 * end wakes up, does not count. */
static uint64_t ask(struct distance_meter *m)
{
	uint64_t least = UINT64_MAX;
	unsigned value = 0;

	for (unsigned round = 0; round <= ROUNDS; round++) {
		uint64_t before = clock_cycles(), took;

		for (unsigned i = 0; i < BOUNCES; i++, value += 2) {
			atomic_store_explicit(&m->line, value + 1, memory_order_release);
			if (!line_is(m, value + 2))
				return 0;
		}
		took = clock_cycles() - before;
		least = round && took < least ? took : least;
	}
	m->work[0] = least_work();
	return least;
}

/* Whether the other thread has finished, now or until a moment of CLOCK_MONOTONIC. */
static bool is_back(struct distance_meter *m, uint64_t ns)
{
	const struct timespec until = {
	        .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	while (m->out && sem_clockwait(&m->done, CLOCK_MONOTONIC, &until) != 0)
		if (errno != EINTR)
			return false;
	m->out = false;
	return true;
}

static bool pin(pthread_t thread, unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= CPU_SETSIZE)
		return false;
	CPU_SET(cpu, &set);
	return pthread_setaffinity_np(thread, sizeof(set), &set) == 0;
}

bool distance_init(struct distance_meter *m)
{
	const struct sched_param least = {.sched_priority = 1};

	*m = (struct distance_meter){0};
	clock_anchor(&m->clock);
	sem_init(&m->begin, 0, 0);
	sem_init(&m->done, 0, 0);
	/* Without priority, a polling switch would keep its time slice of milliseconds. If this is refused,
	 * it does. */
	sched_setscheduler(0, SCHED_FIFO, &least);
	if (pthread_create(&m->other, NULL, other, m) != 0)
		return false;
	clock_calibrate(&m->clock);
	return true;
}

bool distance_measure(struct distance_meter *m, unsigned a, unsigned b, struct distance *d)
{
	uint64_t until_ns = clock_monotonic_ns() + DISTANCE_LIMIT_NS, cycles;

	if (a == b || !is_back(m, until_ns) || !pin(m->other, b) || !pin(pthread_self(), a))
		return false;
	atomic_store(&m->line, 0);
	m->work[1] = 0;
	m->until = clock_cycles() + clock_ns_to_cycles(&m->clock, DISTANCE_LIMIT_NS);
	m->out = true;
	sem_post(&m->begin);
	cycles = ask(m);
	if (!is_back(m, until_ns) || !cycles || !m->work[1])
		return false;
	d->ns = (double)cycles * m->clock.ns_per_cycle / BOUNCES;
	for (int end = 0; end < 2; end++)
		d->work_ns[end] = (double)m->work[end] * m->clock.ns_per_cycle;
	return true;
}
