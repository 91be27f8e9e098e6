/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that costs a given number of TSC cycles a packet: a loop that looks at the counter until they are
 * over.
 *
 * What a spell takes too long or too short, by the loop's step, is settled with the next one, so that the
 * mean is exact. While another task has the CPU nothing is spent: real work would have to go on, too. An
 * interrupt, which is short, counts as spent.
 */
#ifndef ICBENCH_COST_H
#define ICBENCH_COST_H

#include <stdint.h>

struct cost {
	uint32_t cycles; /* a packet */
	int64_t owed;    /* cycles still to spend; negative: spent in advance */
	int64_t outside; /* of a call, before its first and after its last look at the counter */
};

/* Measures what a call itself takes, about a millisecond. */
void cost_init(struct cost *c, uint32_t cycles);

/* Spends the cycles of that many packets. */
void cost_spend(struct cost *c, unsigned packets);

#endif
