/* SPDX-License-Identifier: BSD-3-Clause */
/* The distance of two CPUs, on machines that have two. */
#include "base/distance.h"

#include <sched.h>

#include "check.h"

static struct distance_meter meter;

/* Finds two CPUs of this process; false if it has only one. */
static bool two_cpus(unsigned cpus[2])
{
	cpu_set_t set;
	unsigned found = 0;

	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[found++] = cpu;
	return found == 2;
}

static void two_cpus_have_a_distance(const unsigned cpus[2])
{
	struct distance d;
	unsigned known = 0;

	/* A thread that does not get its CPU gives no result. */
	for (unsigned i = 0; i < 50 && !known; i++)
		known += distance_measure(&meter, cpus[i % 2], cpus[1 - i % 2], &d);
	CHECK(known);
	CHECK(d.ns > 1 && d.ns < 1e6);
	CHECK(d.work_ns[0] > 100 && d.work_ns[1] > 100);
	CHECK_EQUAL(sched_getcpu() == (int)cpus[0] || sched_getcpu() == (int)cpus[1], true);
}

static void nothing_to_measure(const unsigned cpus[2])
{
	struct distance d;

	CHECK(!distance_measure(&meter, cpus[0], cpus[0], &d));
	CHECK(!distance_measure(&meter, cpus[0], CPU_SETSIZE - 1, &d));
	CHECK(!distance_measure(&meter, CPU_SETSIZE - 1, cpus[0], &d));
	CHECK(!distance_measure(&meter, cpus[0], UINT32_MAX, &d));
}

/* The other end has not finished an earlier measurement. */
static void an_end_that_is_kept_from_its_cpu(const unsigned cpus[2])
{
	struct distance d;
	uint64_t before = clock_monotonic_ns();

	meter.out = true;
	CHECK(!distance_measure(&meter, cpus[0], cpus[1], &d));
	CHECK(clock_monotonic_ns() - before >= DISTANCE_LIMIT_NS);
	sem_post(&meter.done);
	two_cpus_have_a_distance(cpus);
}

int main(void)
{
	unsigned cpus[2];

	if (!two_cpus(cpus))
		return 77; /* Meson: skipped */
	CHECK(distance_init(&meter));
	two_cpus_have_a_distance(cpus);
	nothing_to_measure(cpus);
	an_end_that_is_kept_from_its_cpu(cpus);
	two_cpus_have_a_distance(cpus);
	return 0;
}
