/* SPDX-License-Identifier: BSD-3-Clause */
/* A high-dynamic-range histogram: constant relative error, constant time to record.
 *
 * Values 0 to 2^41-1 (36 minutes in ns); larger ones count in the last bucket, while max stays exact.
 * With d digits a recorded value and the value its bucket stands for differ by at most 10^-d of the value.
 */
#ifndef ICBENCH_RTT_H
#define ICBENCH_RTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTT_VALUE_BITS 41

struct rtt {
	unsigned digits;
	unsigned half_bits; /* log2 of buckets per power of two */
	size_t buckets;
	uint64_t count, min, max;
	__uint128_t sum;
	uint64_t *counts;
};

/* digits 1 to 5. false if memory is short. */
bool rtt_init(struct rtt *h, unsigned digits);
void rtt_free(struct rtt *h);
void rtt_reset(struct rtt *h);

static inline size_t rtt_bucket(const struct rtt *h, uint64_t value)
{
	uint64_t capped = value >> RTT_VALUE_BITS ? (UINT64_C(1) << RTT_VALUE_BITS) - 1 : value;
	/* The position of the highest bit decides the shift; small values share the first, linear part. */
	unsigned top = 63u - (unsigned)__builtin_clzll(capped | UINT64_C(1) << h->half_bits);
	unsigned shift = top - h->half_bits;

	return ((size_t)shift << h->half_bits) + (size_t)(capped >> shift);
}

static inline void rtt_record(struct rtt *h, uint64_t value, uint64_t n)
{
	h->counts[rtt_bucket(h, value)] += n;
	h->count += n;
	h->sum += (__uint128_t)value * n;
	h->min = value < h->min ? value : h->min;
	h->max = value > h->max ? value : h->max;
}

/* Adds all of other's samples; both must have the same digits. */
void rtt_add(struct rtt *h, const struct rtt *other);

/* The highest value that falls into the bucket. */
uint64_t rtt_bucket_value(const struct rtt *h, size_t bucket);

/* Mean of what was recorded, exact; 0 if nothing was. */
double rtt_mean(const struct rtt *h);

/* The value below or at which a share q (0 to 1) of the samples lies, of which `beyond` more than were
 * recorded lie above all of these. False if samples * (1 - q) < 10, since a percentile from fewer samples is
 * chance, and if it lies among those beyond. */
bool rtt_quantile(const struct rtt *h, double q, uint64_t beyond, uint64_t *value);

/* The same without the rule about few samples; 0 if nothing was recorded. */
uint64_t rtt_quantile_any(const struct rtt *h, double q);

#endif
