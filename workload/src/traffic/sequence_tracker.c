/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/sequence_tracker.h"

#include <stdlib.h>

#define MAP_BITS (2 * TRACKER_HORIZON)
#define MAP_WORDS (MAP_BITS / 64)

struct sequence_tracker {
	uint64_t next;        /* next expected sequence number */
	uint64_t retired;     /* lower numbers have left the map (a multiple of 64) */
	uint64_t gone;        /* those of them that never arrived */
	uint64_t prepared;    /* the map is clean for numbers up to here (a multiple of 64) */
	tracker_gone watcher; /* or NULL */
	void *context;
	uint64_t map[MAP_WORDS];
};

struct sequence_tracker *tracker_new(void)
{
	struct sequence_tracker *a = aligned_alloc(64, (sizeof(*a) + 63) & ~(size_t)63);

	if (!a)
		return NULL;
	a->next = a->retired = a->gone = 0;
	a->prepared = MAP_BITS;
	a->watcher = NULL;
	a->context = NULL;
	for (unsigned i = 0; i < MAP_WORDS; i++)
		a->map[i] = 0;
	return a;
}

void tracker_free(struct sequence_tracker *a)
{
	free(a);
}

uint64_t tracker_next(const struct sequence_tracker *a)
{
	return a->next;
}

static inline uint64_t *word_of(struct sequence_tracker *a, uint64_t sequence)
{
	return &a->map[sequence / 64 % MAP_WORDS];
}

void tracker_watch(struct sequence_tracker *a, tracker_gone gone, void *context)
{
	a->watcher = gone;
	a->context = context;
}

/* Reports the missing numbers from `first` (a multiple of 64) to `end` to the watcher, consecutive empty
 * words at once. */
static void report_missing(struct sequence_tracker *a, uint64_t first, uint64_t end)
{
	uint64_t unreported = first;

	for (uint64_t at = first; at < end; at += 64) {
		uint64_t word = *word_of(a, at);

		if (!word && at + 64 <= end)
			continue;
		if (unreported < at)
			a->watcher(a->context, unreported, at - unreported);
		unreported = at + 64;
		for (uint64_t missing = ~word; missing; missing &= missing - 1) {
			uint64_t sequence = at + (unsigned)__builtin_ctzll(missing);

			if (sequence < end)
				a->watcher(a->context, sequence, 1);
		}
	}
	if (unreported < end)
		a->watcher(a->context, unreported, end - unreported);
}

void tracker_finish(struct sequence_tracker *a, uint64_t end)
{
	uint64_t behind = a->next > a->retired ? a->next : a->retired;

	if (!a->watcher)
		return;
	report_missing(a, a->retired, a->next);
	if (behind < end)
		a->watcher(a->context, behind, end - behind);
}

/* Recycles the oldest words until the map reaches `end`. Unset bits in them never arrived. */
static void make_room(struct sequence_tracker *a, uint64_t end)
{
	uint64_t need = (end - a->prepared + 63) / 64;
	uint64_t words = need < MAP_WORDS ? need : MAP_WORDS, behind = a->retired + 64 * words;

	if (a->watcher) {
		report_missing(a, a->retired, behind);
		if (need > words) /* a leap larger than the map: those never had a bit */
			a->watcher(a->context, behind, 64 * (need - words));
	}
	for (uint64_t i = 0; i < words; i++) {
		uint64_t *word = word_of(a, a->retired + 64 * i);

		a->gone += 64 - (unsigned)__builtin_popcountll(*word);
		*word = 0;
	}
	a->gone += 64 * (need - words);
	a->retired += 64 * need;
	a->prepared += 64 * need;
}

static inline void advance(struct sequence_tracker *a, uint64_t end)
{
	if (end > a->prepared)
		make_room(a, end);
	a->next = end;
}

enum tracker_verdict tracker_one(struct sequence_tracker *a, uint64_t sequence)
{
	uint64_t bit = UINT64_C(1) << sequence % 64;
	uint64_t *word = word_of(a, sequence);

	if (sequence >= a->next) {
		advance(a, sequence + 1);
		*word |= bit;
		return TRACKER_NEW;
	}
	if (a->next - sequence > TRACKER_HORIZON)
		return TRACKER_LATE;
	if (*word & bit)
		return TRACKER_DUPLICATE;
	*word |= bit;
	return TRACKER_REORDERED;
}

int tracker_run(struct sequence_tracker *a, uint64_t first, unsigned n)
{
	uint64_t end = first + n;

	if (first < a->next)
		return 0;
	advance(a, end);
	while (first < end) {
		unsigned shift = first % 64;
		uint64_t left = end - first;
		unsigned here = left < 64 - shift ? (unsigned)left : 64 - shift;

		*word_of(a, first) |= (~UINT64_C(0) >> (64 - here)) << shift;
		first += here;
	}
	return 1;
}

uint64_t tracker_gaps(const struct sequence_tracker *a)
{
	uint64_t gaps = a->gone, at = a->retired;

	if (at >= a->next) /* the last leap has retired words up to and after `next` */
		return gaps - (at - a->next);
	for (; at + 64 <= a->next; at += 64)
		gaps += 64 - (unsigned)__builtin_popcountll(a->map[at / 64 % MAP_WORDS]);
	if (at < a->next) {
		uint64_t below = (UINT64_C(1) << (a->next - at)) - 1;

		gaps += (unsigned)__builtin_popcountll(~a->map[at / 64 % MAP_WORDS] & below);
	}
	return gaps;
}
