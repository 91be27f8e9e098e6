/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks for unit tests. A failed check prints its place and values, and ends the program with 1. */
#ifndef ICBENCH_CHECK_H
#define ICBENCH_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__,             \
			        #condition);                                                                 \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

#define CHECK_EQUAL(found, expected)                                                                         \
	do {                                                                                                 \
		uint64_t found_ = (uint64_t)(found), expected_ = (uint64_t)(expected);                       \
		if (found_ != expected_) {                                                                   \
			fprintf(stderr, "%s:%d: %s: %s is %" PRIu64 ", expected %" PRIu64 "\n", __FILE__,    \
			        __LINE__, __func__, #found, found_, expected_);                              \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

#define CHECK_CONTAINS(text, part)                                                                           \
	do {                                                                                                 \
		if (!strstr(text, part)) {                                                                   \
			fprintf(stderr, "%s:%d: %s: '%s' is not in '%s'\n", __FILE__, __LINE__, __func__,    \
			        part, text);                                                                 \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

/* xorshift64*: the same numbers everywhere, so that a failure can be reproduced. */
static inline uint64_t check_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
