/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/rtt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_BEYOND 10.0

bool rtt_init(struct rtt *h, unsigned digits)
{
	double wanted = pow(10, digits);

	*h = (struct rtt){.digits = digits, .min = UINT64_MAX};
	/* A bucket spans 2^shift values from at least 2^(half_bits + shift) up: relative width 2^-half_bits.
	 */
	while ((double)(UINT64_C(1) << h->half_bits) < wanted)
		h->half_bits++;
	h->buckets = (size_t)(RTT_VALUE_BITS - h->half_bits + 1) << h->half_bits;
	h->counts = calloc(h->buckets, sizeof(*h->counts));
	return h->counts != NULL;
}

void rtt_free(struct rtt *h)
{
	free(h->counts);
	h->counts = NULL;
}

void rtt_reset(struct rtt *h)
{
	memset(h->counts, 0, h->buckets * sizeof(*h->counts));
	h->count = h->max = 0;
	h->sum = 0;
	h->min = UINT64_MAX;
}

void rtt_add(struct rtt *h, const struct rtt *other)
{
	for (size_t i = 0; i < h->buckets; i++)
		h->counts[i] += other->counts[i];
	h->count += other->count;
	h->sum += other->sum;
	h->min = other->min < h->min ? other->min : h->min;
	h->max = other->max > h->max ? other->max : h->max;
}

uint64_t rtt_bucket_value(const struct rtt *h, size_t bucket)
{
	size_t octave = bucket >> h->half_bits;
	unsigned shift = octave ? (unsigned)octave - 1 : 0;
	uint64_t sub = bucket - ((uint64_t)shift << h->half_bits);

	return ((sub + 1) << shift) - 1;
}

double rtt_mean(const struct rtt *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

static uint64_t value_of_rank(const struct rtt *h, uint64_t rank)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < h->buckets; i++) {
		seen += h->counts[i];
		if (seen >= rank && seen) {
			uint64_t value = rtt_bucket_value(h, i);

			return value < h->max ? value : h->max;
		}
	}
	return h->max;
}

uint64_t rtt_quantile_any(const struct rtt *h, double q)
{
	return h->count ? value_of_rank(h, (uint64_t)ceil(q * (double)h->count)) : 0;
}

bool rtt_quantile(const struct rtt *h, double q, uint64_t beyond, uint64_t *value)
{
	double samples = (double)(h->count + beyond);
	uint64_t rank;

	/* The product of a decimal q is not exact: 1000 * (1 - 0.99) is 10.000000000000009 or a little less.
	 */
	if (samples * (1 - q) < SAMPLES_BEYOND - 1e-6)
		return false;
	rank = (uint64_t)ceil(q * samples - 1e-6);
	if (rank > h->count)
		return false;
	*value = value_of_rank(h, rank);
	return true;
}
