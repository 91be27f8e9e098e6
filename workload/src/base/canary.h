/* SPDX-License-Identifier: BSD-3-Clause */
/* A fixed piece of work, whose duration tells how fast the CPU is at that moment: its clock, what it shares
 * with a sibling, caches that others fill.
 */
#ifndef ICBENCH_CANARY_H
#define ICBENCH_CANARY_H

#include <stdint.h>

struct canary {
	uint8_t *buffer; /* NULL: no memory was left for it */
};

/* Takes the memory, 4 MiB, and touches all of it. */
void canary_init(struct canary *c);
void canary_free(struct canary *c);

/* Does the work, which takes two milliseconds or so. Returns the CPU time of about three quarters of it in
 * ns, or 0 without memory: a peer that shares the CPU does not count, gaps tell of it. */
uint64_t canary_ns(const struct canary *c);

#endif
