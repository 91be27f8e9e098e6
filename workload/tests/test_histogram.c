/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram's error bound, and its percentiles against sorted samples. */
#include "traffic/histogram.h"

#include <math.h>

#include "check.h"

#define LARGEST ((UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1)

static double bound(unsigned digits)
{
	return pow(10, -(double)digits);
}

/* The value of a bucket is its highest, and close to all others in it. */
static void check_value(const struct histogram *h, uint64_t value)
{
	size_t bucket = histogram_bucket(h, value);
	uint64_t stands_for = histogram_bucket_value(h, bucket);

	CHECK(bucket < h->buckets);
	CHECK(stands_for >= value);
	CHECK((double)(stands_for - value) <= bound(h->digits) * (double)value);
	CHECK_EQUAL(histogram_bucket(h, stands_for), bucket);
	if (stands_for < LARGEST)
		CHECK_EQUAL(histogram_bucket(h, stands_for + 1), bucket + 1);
}

static void error_bound(unsigned digits)
{
	struct histogram h;
	uint64_t random = digits;

	CHECK(histogram_init(&h, digits));
	for (uint64_t v = 0; v < 300000; v++)
		check_value(&h, v);
	for (unsigned bit = 1; bit < HISTOGRAM_VALUE_BITS; bit++) {
		check_value(&h, (UINT64_C(1) << bit) - 1);
		check_value(&h, UINT64_C(1) << bit);
		check_value(&h, (UINT64_C(1) << bit) + 1);
	}
	for (unsigned i = 0; i < 300000; i++)
		check_value(
		        &h, check_random(&random) >> (64 - HISTOGRAM_VALUE_BITS + i % HISTOGRAM_VALUE_BITS));
	check_value(&h, LARGEST);
	CHECK_EQUAL(histogram_bucket(&h, LARGEST), h.buckets - 1);
	CHECK_EQUAL(histogram_bucket(&h, UINT64_MAX), h.buckets - 1);
	histogram_free(&h);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void percentiles(unsigned digits)
{
	enum { SAMPLES = 20000 };
	static const double QUANTILES[] = {0.5, 0.9, 0.99, 0.999, 0.9995};
	uint64_t *samples = malloc(SAMPLES * sizeof(*samples)), random = 7 * digits;
	struct histogram h;
	long double sum = 0;

	CHECK(samples && histogram_init(&h, digits));
	for (unsigned i = 0; i < SAMPLES; i++) {
		samples[i] = 5000 + (check_random(&random) >> (44 + check_random(&random) % 10));
		histogram_record(&h, samples[i], 1);
		sum += samples[i];
	}
	qsort(samples, SAMPLES, sizeof(*samples), ascending);
	for (unsigned i = 0; i < sizeof(QUANTILES) / sizeof(QUANTILES[0]); i++) {
		uint64_t exact = samples[(size_t)ceil(QUANTILES[i] * SAMPLES) - 1], found = 0;

		CHECK(histogram_quantile(&h, QUANTILES[i], 0, &found));
		CHECK(found >= exact && (double)(found - exact) <= bound(digits) * (double)exact);
	}
	CHECK_EQUAL(h.count, SAMPLES);
	CHECK_EQUAL(h.min, samples[0]);
	CHECK_EQUAL(h.max, samples[SAMPLES - 1]);
	CHECK(fabsl(sum / SAMPLES - (long double)histogram_mean(&h)) < 1e-6L);
	histogram_free(&h);
	free(samples);
}

static void explain_few_samples(void)
{
	struct histogram h;
	uint64_t value = 42;

	CHECK(histogram_init(&h, 3));
	CHECK(!histogram_quantile(&h, 0.5, 0, &value));
	histogram_record(&h, 100, 19);
	CHECK(!histogram_quantile(&h, 0.5, 0, &value));
	histogram_record(&h, 100, 1);
	CHECK(histogram_quantile(&h, 0.5, 0, &value));
	CHECK_EQUAL(value, 100);
	histogram_record(&h, 200, 979);
	CHECK(!histogram_quantile(&h, 0.99, 0, &value));
	histogram_record(&h, 200, 1);
	CHECK(histogram_quantile(&h, 0.99, 0, &value));
	CHECK(!histogram_quantile(&h, 0.999, 0, &value));
	/* Another tenth without answers raises the rank; the top hundredth is among them. */
	histogram_reset(&h);
	for (uint64_t i = 1; i <= 900; i++)
		histogram_record(&h, i, 1);
	CHECK(histogram_quantile(&h, 0.5, 100, &value));
	CHECK_EQUAL(value, 500);
	CHECK(histogram_quantile(&h, 0.9, 100, &value));
	CHECK_EQUAL(value, 900);
	CHECK(!histogram_quantile(&h, 0.99, 100, &value));
	/* They count as samples for the minimum number. */
	CHECK(!histogram_quantile(&h, 0.99, 0, &value));
	CHECK(histogram_quantile(&h, 0.89, 99, &value));
	histogram_free(&h);
}

static void adding_and_resetting(void)
{
	struct histogram a, b, both;
	uint64_t random = 3;

	CHECK(histogram_init(&a, 2) && histogram_init(&b, 2) && histogram_init(&both, 2));
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t v = check_random(&random) >> 30;

		histogram_record(i % 3 ? &a : &b, v, 1 + i % 2);
		histogram_record(&both, v, 1 + i % 2);
	}
	histogram_add(&a, &b);
	CHECK_EQUAL(a.count, both.count);
	CHECK_EQUAL(a.min, both.min);
	CHECK_EQUAL(a.max, both.max);
	CHECK(a.sum == both.sum);
	CHECK(memcmp(a.counts, both.counts, a.buckets * sizeof(*a.counts)) == 0);
	histogram_reset(&a);
	CHECK_EQUAL(a.count, 0);
	CHECK_EQUAL(histogram_quantile_any(&a, 0.5), 0);
	CHECK(histogram_mean(&a) == 0);
	histogram_record(&a, 9, 1);
	CHECK_EQUAL(a.min, 9);
	CHECK_EQUAL(a.max, 9);
	histogram_free(&a);
	histogram_free(&b);
	histogram_free(&both);
}

int main(void)
{
	for (unsigned digits = 1; digits <= 5; digits++) {
		error_bound(digits);
		percentiles(digits);
	}
	explain_few_samples();
	adding_and_resetting();
	return 0;
}
