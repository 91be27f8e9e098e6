/* SPDX-License-Identifier: BSD-3-Clause */
/* Selects the queue of a frame as a network card does (receive side scaling): the low seven bits of the
 * Toeplitz hash over both addresses and both ports select an entry of a table to which the queues are
 * assigned in turn.
 *
 * Hash, key, order of the fields and use of the low bits: Microsoft, "RSS hashing types" and "Verifying the
 * RSS hash calculation" of the Windows driver documentation. The key is the one of that verification; DPDK's
 * rte_softrss() gives the same results with it. The table has 128 entries, filled as DPDK's drivers fill it:
 * entry i is queue i modulo the number of queues.
 */
#ifndef ICBENCH_RSS_H
#define ICBENCH_RSS_H

#include <stdint.h>

#include "base/frame.h"

#define RSS_KEY_BYTES 40u
/* Both IPv6 addresses and both ports. */
#define RSS_INPUT_MAX 36u
#define RSS_TABLE_ENTRIES 128u
/* Bytes of the input that differ between the flows of a sender: its IPv4 address (the last bytes of an IPv6
 * address) and its port. */
#define RSS_VARYING 6u

extern const uint8_t RSS_KEY[RSS_KEY_BYTES];

/* Returns the hash of up to RSS_INPUT_MAX bytes by definition, bit by bit. */
uint32_t rss_hash(const uint8_t *input, uint32_t bytes);

/* The hash is linear: the hash of a frame is the XOR of its bytes' contributions. Only the bytes that vary
 * are read; the contribution of all others is constant. */
struct rss {
	uint32_t constant, queues;
	uint8_t offset[RSS_VARYING]; /* in the frame */
	uint32_t added[RSS_VARYING][256];
};

void rss_prepare(struct rss *rss, const struct frame_ends *ends, uint32_t queues);

/* Returns the hash of a frame of these ends with any source address and port. */
static inline uint32_t rss_frame_hash(const struct rss *rss, const uint8_t *l2)
{
	uint32_t hash = rss->constant;

	for (unsigned i = 0; i < RSS_VARYING; i++)
		hash ^= rss->added[i][l2[rss->offset[i]]];
	return hash;
}

/* Returns the queue of such a frame, from 0. */
static inline uint32_t rss_queue(const struct rss *rss, const uint8_t *l2)
{
	return rss_frame_hash(rss, l2) % RSS_TABLE_ENTRIES % rss->queues;
}

#endif
