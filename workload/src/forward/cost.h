/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that costs a given number of TSC cycles for each packet: a loop that reads the counter until they have
 * passed.
 *
 * The error of one call, up to a step of the loop, is corrected by the next one, so that the mean is exact.
 * Nothing is spent while another task has the CPU, as with real work. An interrupt is short and counts as
 * spent.
 */
#ifndef ICBENCH_COST_H
#define ICBENCH_COST_H

#include <stdint.h>

struct cost {
	uint32_t cycles; /* for each packet */
	int64_t owed;    /* cycles still to spend; negative: spent in advance */
	int64_t outside; /* of a call, outside its first and last read of the counter */
};

/* Measures the overhead of a call, for about a millisecond. */
void cost_init(struct cost *c, uint32_t cycles);

/* Spends the cycles of `packets` packets. */
void cost_spend(struct cost *c, unsigned packets);

#endif
