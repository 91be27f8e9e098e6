/* SPDX-License-Identifier: BSD-3-Clause */
/* Which queue a frame belongs to, as a network card spreads frames (receive side scaling): the Toeplitz hash
 * of both addresses and both ports, and of its low seven bits an entry of a table in which the queues take
 * turns.
 *
 * Hash, key, order of the fields and use of the low bits: Microsoft, "RSS hashing types" and "Verifying the
 * RSS hash calculation" of the Windows driver documentation. The key is the one of that verification; DPDK's
 * rte_softrss() with it has the same results. The table is one of 128 entries as drivers of DPDK fill it:
 * entry i is queue i modulo their number.
 */
#ifndef ICBENCH_RSS_H
#define ICBENCH_RSS_H

#include <stdint.h>

#include "base/frame.h"

#define RSS_KEY_BYTES 40u
/* Both IPv6 addresses and both ports. */
#define RSS_INPUT_MAX 36u
#define RSS_TABLE_ENTRIES 128u
/* Bytes of the input that differ between the flows of a sender: of its IPv4 address (in an IPv6 address the
 * last ones), and of its port. */
#define RSS_VARYING 6u

extern const uint8_t RSS_KEY[RSS_KEY_BYTES];

/* The hash of up to RSS_INPUT_MAX bytes, by its definition: bit by bit. */
uint32_t rss_hash(const uint8_t *input, uint32_t bytes);

/* The hash is linear: that of a frame is the sum (XOR) of what each byte adds. Only the bytes that vary are
 * looked at; all others are the ends' own. */
struct rss {
	uint32_t constant, queues;
	uint8_t offset[RSS_VARYING]; /* in the frame */
	uint32_t added[RSS_VARYING][256];
};

void rss_prepare(struct rss *rss, const struct frame_ends *ends, uint32_t queues);

/* The hash of a frame of these ends, whatever its source address and port. */
static inline uint32_t rss_frame_hash(const struct rss *rss, const uint8_t *l2)
{
	uint32_t hash = rss->constant;

	for (unsigned i = 0; i < RSS_VARYING; i++)
		hash ^= rss->added[i][l2[rss->offset[i]]];
	return hash;
}

/* Its queue, from 0. */
static inline uint32_t rss_queue(const struct rss *rss, const uint8_t *l2)
{
	return rss_frame_hash(rss, l2) % RSS_TABLE_ENTRIES % rss->queues;
}

#endif
