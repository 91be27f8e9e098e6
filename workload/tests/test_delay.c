/* SPDX-License-Identifier: BSD-3-Clause */
/* A delay line: order, never early, its bound, and all this across a wrap of the counter. */
#include "forward/delay.h"

#include "check.h"

#define CAPACITY 100u

static uintptr_t numbers;

static void *next_frame(void)
{
	return (void *)++numbers;
}

static void never_early(void)
{
	struct delay d;
	void *in[3] = {next_frame(), next_frame(), next_frame()}, *out[4];

	CHECK(delay_init(&d, CAPACITY));
	CHECK_EQUAL(delay_push(&d, in, 2, 1000), 2);
	CHECK_EQUAL(delay_push(&d, in + 2, 1, 1500), 1);
	CHECK_EQUAL(delay_pop(&d, 999, out, 4), 0);
	CHECK_EQUAL(delay_held(&d), 3);
	CHECK_EQUAL(delay_pop(&d, 1000, out, 4), 2);
	CHECK(out[0] == in[0] && out[1] == in[1]);
	CHECK_EQUAL(d.late_max, 0);
	CHECK_EQUAL(delay_pop(&d, 1499, out, 4), 0);
	CHECK_EQUAL(delay_pop(&d, 1507, out, 4), 1);
	CHECK(out[0] == in[2]);
	CHECK_EQUAL(d.late_max, 7);
	CHECK_EQUAL(delay_held(&d), 0);
	CHECK_EQUAL(delay_pop(&d, UINT64_MAX / 4, out, 4), 0);
	delay_free(&d);
}

static void a_few_at_a_time(void)
{
	struct delay d;
	void *in[5], *out[5];

	for (int i = 0; i < 5; i++)
		in[i] = next_frame();
	CHECK(delay_init(&d, CAPACITY));
	delay_push(&d, in, 5, 10);
	CHECK_EQUAL(delay_pop(&d, 20, out, 2), 2);
	CHECK_EQUAL(delay_pop(&d, 20, out + 2, 2), 2);
	CHECK_EQUAL(delay_pop(&d, 20, out + 4, 2), 1);
	CHECK(memcmp(in, out, sizeof(in)) == 0);
	CHECK_EQUAL(d.late_max, 10);
	delay_free(&d);
}

/* The bound is the requested capacity, not the ring's size. */
static void bounded(void)
{
	struct delay d;
	void *frames[CAPACITY + 1];

	for (unsigned i = 0; i <= CAPACITY; i++)
		frames[i] = next_frame();
	CHECK(delay_init(&d, CAPACITY));
	CHECK_EQUAL(delay_push(&d, frames, CAPACITY - 3, 5), CAPACITY - 3);
	CHECK_EQUAL(delay_push(&d, frames + CAPACITY - 3, 4, 5), 3);
	CHECK_EQUAL(delay_push(&d, frames + CAPACITY, 1, 5), 0);
	CHECK_EQUAL(delay_held(&d), CAPACITY);
	CHECK_EQUAL(delay_flush(&d, frames, CAPACITY + 1), CAPACITY);
	CHECK_EQUAL(delay_held(&d), 0);
	delay_free(&d);
}

/* Bursts and polls at random times: every frame leaves once, in order, at the first poll after its time. */
static void like_a_queue(uint64_t now)
{
	static uint64_t due_of[1 << 16];
	uint64_t seed = 7, in = 0, out = 0;
	struct delay d;

	CHECK(delay_init(&d, 1000));
	while (out < 20000) {
		void *frames[64];
		unsigned n = (unsigned)(check_random(&seed) % 33), got;
		uint64_t due = now + 5000;

		for (unsigned i = 0; i < n; i++) {
			frames[i] = (void *)(uintptr_t)(in + i + 1);
			due_of[in + i] = due;
		}
		in += delay_push(&d, frames, n, due);
		now += check_random(&seed) % 300;
		got = delay_pop(&d, now, frames, 64);
		for (unsigned i = 0; i < got; i++, out++) {
			CHECK_EQUAL((uintptr_t)frames[i], out + 1);
			CHECK((int64_t)(now - due_of[out]) >= 0);
		}
		CHECK(got == 64 || out == in || (int64_t)(now - due_of[out]) < 0);
		CHECK_EQUAL(delay_held(&d), in - out);
	}
	delay_free(&d);
}

int main(void)
{
	never_early();
	a_few_at_a_time();
	bounded();
	like_a_queue(0);
	like_a_queue(UINT64_MAX - 100000);
	return 0;
}
