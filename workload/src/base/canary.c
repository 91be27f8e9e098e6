/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/canary.h"

#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

/* A millisecond at 3 GHz and four cycles a step. */
#define STEPS 800000u
#define LINE_BYTES 64u
/* 4 MiB: more than a second-level cache has, less than the third one. */
#define LINES (UINT32_C(1) << 16)
#define LINES_VISITED (LINES / 2)

void canary_init(struct canary *c)
{
	size_t size = (size_t)LINES * LINE_BYTES;
	void *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	c->buffer = NULL;
	if (buffer == MAP_FAILED)
		return;
	/* A huge page or none is chance, and would make one process' walk quicker than another's. */
	madvise(buffer, size, MADV_NOHUGEPAGE);
	c->buffer = buffer;
	for (size_t line = 0; line < LINES; line++)
		c->buffer[line * LINE_BYTES] = 1;
}

void canary_free(struct canary *c)
{
	if (c->buffer)
		munmap(c->buffer, (size_t)LINES * LINE_BYTES);
	c->buffer = NULL;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Each step needs the result of the one before. */
static uint64_t reckon(uint64_t x)
{
	for (unsigned i = 0; i < STEPS; i++)
		x = x * UINT64_C(6364136223846793005) + (x >> 29);
	return x;
}

/* Lines in an order that no prefetcher foresees: a linear congruential generator with a full period, whose
 * next value needs what stands in the present line. */
static uint64_t walk(const volatile uint8_t *buffer, uint64_t x)
{
	uint32_t line = (uint32_t)x % LINES;

	for (unsigned i = 0; i < LINES_VISITED; i++)
		line = (line * 1664525u + 1013904222u + buffer[(size_t)line * LINE_BYTES]) % LINES;
	return x + line;
}

uint64_t canary_ns(const struct canary *c)
{
	volatile const uint8_t *buffer = c->buffer;
	volatile uint64_t result;
	uint64_t before, sum = 1;

	if (!buffer)
		return 0;
	/* Not timed: what the launch has left of it in the caches differs from launch to launch. */
	for (size_t line = 0; line < LINES; line++)
		sum += buffer[line * LINE_BYTES];
	before = cpu_ns();
	result = walk(buffer, reckon(sum));
	(void)result;
	return cpu_ns() - before;
}
