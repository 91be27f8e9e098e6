/* SPDX-License-Identifier: BSD-3-Clause */
/* A high-dynamic-range histogram with constant relative error and constant time to record.
 *
 * Values are 0 to 2^41-1 (36 minutes in ns). Larger ones count in the last bucket, while max stays exact.
 * With d digits, a recorded value and the value of its bucket differ by at most 10^-d of the value.
 */
#ifndef ICBENCH_HISTOGRAM_H
#define ICBENCH_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_VALUE_BITS 41

struct json;

struct histogram {
	unsigned digits;
	unsigned half_bits; /* log2 of buckets per power of two */
	size_t buckets;
	uint64_t count, min, max;
	__uint128_t sum;
	uint64_t *counts;
};

/* digits is 1 to 5. Returns false if memory is short. */
bool histogram_init(struct histogram *h, unsigned digits);
void histogram_free(struct histogram *h);
void histogram_reset(struct histogram *h);

static inline size_t histogram_bucket(const struct histogram *h, uint64_t value)
{
	uint64_t capped = value >> HISTOGRAM_VALUE_BITS ? (UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1 : value;
	/* The highest bit determines the shift; small values share the first, linear part. */
	unsigned top = 63u - (unsigned)__builtin_clzll(capped | UINT64_C(1) << h->half_bits);
	unsigned shift = top - h->half_bits;

	return ((size_t)shift << h->half_bits) + (size_t)(capped >> shift);
}

static inline void histogram_record(struct histogram *h, uint64_t value, uint64_t n)
{
	h->counts[histogram_bucket(h, value)] += n;
	h->count += n;
	h->sum += (__uint128_t)value * n;
	h->min = value < h->min ? value : h->min;
	h->max = value > h->max ? value : h->max;
}

/* Adds all samples of `other`, which must have the same digits. */
void histogram_add(struct histogram *h, const struct histogram *other);

/* Returns the highest value of a bucket. */
uint64_t histogram_bucket_value(const struct histogram *h, size_t bucket);

/* Returns the exact mean of the recorded values; 0 if there are none. */
double histogram_mean(const struct histogram *h);

/* Computes the smallest value that the share q (0 to 1) of the samples does not exceed, if `beyond` further
 * samples exceed all recorded ones. Returns false if samples * (1 - q) < 10, because a percentile of fewer
 * samples is random, and if the value is among the further samples. */
bool histogram_quantile(const struct histogram *h, double q, uint64_t beyond, uint64_t *value);

/* The same without the minimum number of samples; 0 if nothing was recorded. */
uint64_t histogram_quantile_any(const struct histogram *h, double q);

/* Appends the object KEY: count, min, mean, max, significant_digits and counts, pairs of value and number. */
void histogram_json(struct json *j, const char *key, const struct histogram *h);

#endif
