/* SPDX-License-Identifier: BSD-3-Clause */
/* The tracker against a model that remembers everything. */
#include "traffic/sequence_tracker.h"

#include "check.h"

#define MODEL_SEQUENCES (UINT64_C(1) << 26)

struct model {
	uint8_t *seen;
	uint64_t next, distinct;
};

static enum tracker_verdict model_one(struct model *m, uint64_t sequence)
{
	if (sequence >= m->next) {
		m->next = sequence + 1;
		m->seen[sequence] = 1;
		m->distinct++;
		return TRACKER_NEW;
	}
	if (sequence + TRACKER_HORIZON < m->next)
		return TRACKER_LATE;
	if (m->seen[sequence])
		return TRACKER_DUPLICATE;
	m->seen[sequence] = 1;
	m->distinct++;
	return TRACKER_REORDERED;
}

static void agree(struct sequence_tracker *a, const struct model *m)
{
	CHECK_EQUAL(tracker_next(a), m->next);
	CHECK_EQUAL(tracker_gaps(a), m->next - m->distinct);
}

static void one(struct sequence_tracker *a, struct model *m, uint64_t sequence)
{
	CHECK_EQUAL(tracker_one(a, sequence), model_one(m, sequence));
}

/* Tracks consecutive frames at once or, if that is declined, one by one, as the receiver does. */
static void run_of(struct sequence_tracker *a, struct model *m, uint64_t first, unsigned n)
{
	int at_once = tracker_run(a, first, n);

	CHECK_EQUAL(at_once, first >= m->next);
	for (unsigned i = 0; i < n; i++) {
		enum tracker_verdict expected = model_one(m, first + i);

		if (at_once)
			CHECK_EQUAL(TRACKER_NEW, expected);
		else
			CHECK_EQUAL(tracker_one(a, first + i), expected);
	}
}

static uint64_t older(const struct model *m, uint64_t by)
{
	return m->next > by ? m->next - by : 0;
}

/* Loss, duplication, reordering near and far, leaps, and the very edge of the horizon. */
static void random_traffic(uint64_t seed, uint64_t largest_leap)
{
	struct model m = {.seen = calloc(MODEL_SEQUENCES, 1)};
	struct sequence_tracker *a = tracker_new();
	uint64_t random = seed;

	CHECK(m.seen && a);
	for (unsigned step = 0; step < 200000 && m.next + largest_leap + 4096 < MODEL_SEQUENCES; step++) {
		uint64_t r = check_random(&random);
		uint64_t pick = r % 100, n = r >> 32;

		if (pick < 60)
			run_of(a, &m, m.next, 1 + n % 300);
		else if (pick < 75)
			run_of(a, &m, m.next + n % 40, 1 + n % 70);
		else if (pick < 80)
			run_of(a, &m, older(&m, n % 200), 1 + n % 64);
		else if (pick < 90)
			one(a, &m, older(&m, 1 + n % 2000));
		else if (pick < 96)
			one(a, &m, older(&m, 1 + n % (2 * TRACKER_HORIZON)));
		else if (pick < 98)
			one(a, &m, older(&m, TRACKER_HORIZON - 1 + n % 3));
		else if (step % 64 == 0)
			one(a, &m, m.next + n % largest_leap);
		if (step % 1000 == 0)
			agree(a, &m);
	}
	agree(a, &m);
	CHECK(m.next > 2 * TRACKER_HORIZON);
	tracker_free(a);
	free(m.seen);
}

static void edge_of_the_horizon(void)
{
	struct sequence_tracker *a = tracker_new();

	tracker_run(a, 1, 1000);
	for (uint64_t s = 1001; s < TRACKER_HORIZON; s++)
		tracker_one(a, s);
	/* next is 2^20: number 0 is the oldest within the horizon. */
	CHECK_EQUAL(tracker_gaps(a), 1);
	CHECK_EQUAL(tracker_one(a, 0), TRACKER_REORDERED);
	CHECK_EQUAL(tracker_gaps(a), 0);
	CHECK_EQUAL(tracker_one(a, 0), TRACKER_DUPLICATE);
	CHECK_EQUAL(tracker_one(a, TRACKER_HORIZON), TRACKER_NEW);
	CHECK_EQUAL(tracker_one(a, 0), TRACKER_LATE);
	CHECK_EQUAL(tracker_one(a, 1), TRACKER_DUPLICATE);
	tracker_free(a);
}

static void nothing_came(void)
{
	struct sequence_tracker *a = tracker_new();

	CHECK_EQUAL(tracker_next(a), 0);
	CHECK_EQUAL(tracker_gaps(a), 0);
	tracker_free(a);
}

static void a_leap_across_all_numbers(void)
{
	struct sequence_tracker *a = tracker_new();
	const uint64_t last = (UINT64_C(1) << 48) - 1;

	CHECK_EQUAL(tracker_one(a, 5), TRACKER_NEW);
	CHECK_EQUAL(tracker_one(a, last), TRACKER_NEW);
	CHECK_EQUAL(tracker_next(a), last + 1);
	CHECK_EQUAL(tracker_gaps(a), last + 1 - 2);
	CHECK_EQUAL(tracker_one(a, last - 3), TRACKER_REORDERED);
	CHECK_EQUAL(tracker_gaps(a), last + 1 - 3);
	tracker_free(a);
}

int main(void)
{
	nothing_came();
	edge_of_the_horizon();
	a_leap_across_all_numbers();
	for (uint64_t seed = 1; seed <= 5; seed++) {
		random_traffic(seed, 100);
		random_traffic(seed * 77, 3 * TRACKER_HORIZON);
	}
	return 0;
}
