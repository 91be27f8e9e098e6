/* SPDX-License-Identifier: BSD-3-Clause */
/* The work that a frame costs: all of it is spent, and none while another task has the CPU. */
#include "forward/cost.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"
#include "check.h"

/* At least the requested cycles, except what the next call corrects. The upper bound depends on the
 * machine. */
static void costs_add_up(void)
{
	struct cost c;
	uint64_t start;

	cost_init(&c, 700);
	CHECK(c.cycles == 700 && c.owed == 0);
	start = clock_cycles();
	for (unsigned i = 1; i <= 1000; i++)
		cost_spend(&c, i % 33);
	CHECK((int64_t)(clock_cycles() - start) + c.outside * 1000 >= 700 * 15984 - 1000);
	cost_init(&c, 1);
	for (unsigned i = 0; i < 1000; i++)
		cost_spend(&c, 1);
	CHECK(c.owed <= c.outside && c.owed >= -400);
}

static volatile uint64_t away;

static void go_away(int number)
{
	uint64_t start = clock_cycles();

	(void)number;
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	away += clock_cycles() - start;
}

/* A sleeping signal handler acts as another task. One that runs before or after the work does not count. */
static void time_of_others_is_not_spent(void)
{
	const struct itimerval often = {{0, 3000}, {0, 3000}}, none = {{0, 0}, {0, 0}};
	struct cost c;
	uint64_t start, before, within;

	cost_init(&c, 40000000);
	signal(SIGALRM, go_away);
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	start = clock_cycles();
	before = away;
	cost_spend(&c, 1);
	within = away - before;
	start = clock_cycles() - start;
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
	CHECK(within > 0);
	CHECK(start + 400 >= 40000000 + within);
}

int main(void)
{
	costs_add_up();
	time_of_others_is_not_spent();
	return 0;
}
