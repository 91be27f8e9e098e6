/* SPDX-License-Identifier: BSD-3-Clause */
/* The accounts against a model that remembers everything. */
#include "traffic/account.h"

#include "check.h"

#define MODEL_SEQUENCES (UINT64_C(1) << 26)

struct model {
	uint8_t *seen;
	uint64_t next, distinct;
};

static enum account_verdict model_one(struct model *m, uint64_t sequence)
{
	if (sequence >= m->next) {
		m->next = sequence + 1;
		m->seen[sequence] = 1;
		m->distinct++;
		return ACCOUNT_NEW;
	}
	if (sequence + ACCOUNT_HORIZON < m->next)
		return ACCOUNT_LATE;
	if (m->seen[sequence])
		return ACCOUNT_DUPLICATE;
	m->seen[sequence] = 1;
	m->distinct++;
	return ACCOUNT_REORDERED;
}

static void agree(struct account *a, const struct model *m)
{
	CHECK_EQUAL(account_next(a), m->next);
	CHECK_EQUAL(account_gaps(a), m->next - m->distinct);
}

static void one(struct account *a, struct model *m, uint64_t sequence)
{
	CHECK_EQUAL(account_one(a, sequence), model_one(m, sequence));
}

/* A run of new frames, at once or, where the account declines, one by one; as the receiver does it. */
static void run_of(struct account *a, struct model *m, uint64_t first, unsigned n)
{
	int at_once = account_run(a, first, n);

	CHECK_EQUAL(at_once, first >= m->next);
	for (unsigned i = 0; i < n; i++) {
		enum account_verdict expected = model_one(m, first + i);

		if (at_once)
			CHECK_EQUAL(ACCOUNT_NEW, expected);
		else
			CHECK_EQUAL(account_one(a, first + i), expected);
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
	struct account *a = account_new();
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
			one(a, &m, older(&m, 1 + n % (2 * ACCOUNT_HORIZON)));
		else if (pick < 98)
			one(a, &m, older(&m, ACCOUNT_HORIZON - 1 + n % 3));
		else if (step % 64 == 0)
			one(a, &m, m.next + n % largest_leap);
		if (step % 1000 == 0)
			agree(a, &m);
	}
	agree(a, &m);
	CHECK(m.next > 2 * ACCOUNT_HORIZON);
	account_free(a);
	free(m.seen);
}

static void edge_of_the_horizon(void)
{
	struct account *a = account_new();

	account_run(a, 1, 1000);
	for (uint64_t s = 1001; s < ACCOUNT_HORIZON; s++)
		account_one(a, s);
	/* next is 2^20: number 0 is the oldest within the horizon. */
	CHECK_EQUAL(account_gaps(a), 1);
	CHECK_EQUAL(account_one(a, 0), ACCOUNT_REORDERED);
	CHECK_EQUAL(account_gaps(a), 0);
	CHECK_EQUAL(account_one(a, 0), ACCOUNT_DUPLICATE);
	CHECK_EQUAL(account_one(a, ACCOUNT_HORIZON), ACCOUNT_NEW);
	CHECK_EQUAL(account_one(a, 0), ACCOUNT_LATE);
	CHECK_EQUAL(account_one(a, 1), ACCOUNT_DUPLICATE);
	account_free(a);
}

static void nothing_came(void)
{
	struct account *a = account_new();

	CHECK_EQUAL(account_next(a), 0);
	CHECK_EQUAL(account_gaps(a), 0);
	account_free(a);
}

static void a_leap_across_all_numbers(void)
{
	struct account *a = account_new();
	const uint64_t last = (UINT64_C(1) << 48) - 1;

	CHECK_EQUAL(account_one(a, 5), ACCOUNT_NEW);
	CHECK_EQUAL(account_one(a, last), ACCOUNT_NEW);
	CHECK_EQUAL(account_next(a), last + 1);
	CHECK_EQUAL(account_gaps(a), last + 1 - 2);
	CHECK_EQUAL(account_one(a, last - 3), ACCOUNT_REORDERED);
	CHECK_EQUAL(account_gaps(a), last + 1 - 3);
	account_free(a);
}

int main(void)
{
	nothing_came();
	edge_of_the_horizon();
	a_leap_across_all_numbers();
	for (uint64_t seed = 1; seed <= 5; seed++) {
		random_traffic(seed, 100);
		random_traffic(seed * 77, 3 * ACCOUNT_HORIZON);
	}
	return 0;
}
