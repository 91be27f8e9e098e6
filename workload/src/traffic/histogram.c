/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define SAMPLES_BEYOND 10.0

bool histogram_init(struct histogram *h, unsigned digits)
{
	double wanted = pow(10, digits);

	*h = (struct histogram){.digits = digits, .min = UINT64_MAX};
	/* A bucket spans 2^shift values from at least 2^(half_bits + shift) up: relative width 2^-half_bits.
	 */
	while ((double)(UINT64_C(1) << h->half_bits) < wanted)
		h->half_bits++;
	h->buckets = (size_t)(HISTOGRAM_VALUE_BITS - h->half_bits + 1) << h->half_bits;
	h->counts = calloc(h->buckets, sizeof(*h->counts));
	return h->counts != NULL;
}

void histogram_free(struct histogram *h)
{
	free(h->counts);
	h->counts = NULL;
}

void histogram_reset(struct histogram *h)
{
	memset(h->counts, 0, h->buckets * sizeof(*h->counts));
	h->count = h->max = 0;
	h->sum = 0;
	h->min = UINT64_MAX;
}

void histogram_add(struct histogram *h, const struct histogram *other)
{
	for (size_t i = 0; i < h->buckets; i++)
		h->counts[i] += other->counts[i];
	h->count += other->count;
	h->sum += other->sum;
	h->min = other->min < h->min ? other->min : h->min;
	h->max = other->max > h->max ? other->max : h->max;
}

uint64_t histogram_bucket_value(const struct histogram *h, size_t bucket)
{
	size_t octave = bucket >> h->half_bits;
	unsigned shift = octave ? (unsigned)octave - 1 : 0;
	uint64_t sub = bucket - ((uint64_t)shift << h->half_bits);

	return ((sub + 1) << shift) - 1;
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

static uint64_t value_of_rank(const struct histogram *h, uint64_t rank)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < h->buckets; i++) {
		seen += h->counts[i];
		if (seen >= rank && seen) {
			uint64_t value = histogram_bucket_value(h, i);

			return value < h->max ? value : h->max;
		}
	}
	return h->max;
}

uint64_t histogram_quantile_any(const struct histogram *h, double q)
{
	return h->count ? value_of_rank(h, (uint64_t)ceil(q * (double)h->count)) : 0;
}

bool histogram_quantile(const struct histogram *h, double q, uint64_t beyond, uint64_t *value)
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

void histogram_json(struct json *j, const char *key, const struct histogram *h)
{
	json_open(j, key, '{');
	json_u64(j, "count", h->count);
	json_u64_or_null(j, "min", h->min, h->count);
	if (h->count)
		json_double(j, "mean", histogram_mean(h));
	else
		json_null(j, "mean");
	json_u64_or_null(j, "max", h->max, h->count);
	json_u64(j, "significant_digits", h->digits);
	json_open(j, "counts", '[');
	for (size_t i = 0; i < h->buckets; i++) {
		if (!h->counts[i])
			continue;
		json_open(j, NULL, '[');
		json_u64(j, NULL, histogram_bucket_value(h, i));
		json_u64(j, NULL, h->counts[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}
