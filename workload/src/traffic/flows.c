/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/flows.h"

#include <stdlib.h>

#include "base/json.h"

bool flows_init(struct flows *f, const struct flow_pattern *pattern, const struct acl *acl)
{
	*f = (struct flows){.pattern = pattern,
	        .acl = acl,
	        .next = calloc(pattern->flows, sizeof(*f->next)),
	        .lost = calloc(pattern->flows, sizeof(*f->lost))};
	return f->next && f->lost;
}

void flows_free(struct flows *f)
{
	free(f->next);
	free(f->lost);
	*f = (struct flows){0};
}

void flows_take_run(struct flows *f, uint64_t first, unsigned n)
{
	struct pattern_place at = pattern_place(f->pattern, first);

	/* Usually consecutive flows, which the compiler can vectorize. */
	if (!f->pattern->zipf && at.flow + n <= f->pattern->flows && n <= at.turn_left) {
		uint64_t *next = f->next + at.flow;

		for (unsigned i = 0; i < n; i++)
			next[i] = first + i + 1;
		return;
	}
	for (unsigned i = 0; i < n; i++)
		f->next[pattern_next_flow(f->pattern, &at)] = first + i + 1;
}

bool flows_take_late(struct flows *f, uint64_t sequence)
{
	uint64_t *next = &f->next[pattern_flow(f->pattern, sequence)];

	if (*next > sequence)
		return true;
	*next = sequence + 1;
	return false;
}

/* Adds `each` lost frames to each flow, or to each column of Zipf's law. */
static void count_lost_each(struct flows *f, uint64_t each)
{
	const struct flow_pattern *s = f->pattern;

	for (uint32_t i = 0; i < s->flows; i++) {
		uint64_t own =
		        s->zipf ? (uint64_t)((unsigned __int128)each * s->columns[i].limit >> 32) : each;

		f->lost[i] += own;
		if (own < each)
			f->lost[s->columns[i].other] += each - own;
	}
}

/* Counts n lost frames of one turn or of whole turns. All flows lost equally many, except for the
 * remainder. */
static void count_lost(struct flows *f, uint64_t first, uint64_t n)
{
	const struct flow_pattern *s = f->pattern;
	uint64_t each = s->zipf && n <= FLOWS_EXACT ? 0 : n / s->flows;

	if (each)
		count_lost_each(f, each);
	for (uint64_t i = each * s->flows; i < n; i++)
		f->lost[pattern_flow(s, first + i)]++;
}

void flows_note_lost(void *context, uint64_t first, uint64_t n)
{
	struct flows *f = context;
	uint64_t turn = f->pattern->turn, left = turn ? turn - first % turn : n, rest;

	if (n <= left) {
		count_lost(f, first, n);
		return;
	}
	count_lost(f, first, left);
	rest = (n - left) % turn;
	count_lost(f, first + left, n - left - rest);
	count_lost(f, first + n - rest, rest);
}

/* Returns the lost frames of a flow; those that an ACL drops are not lost. */
static uint64_t lost_frames(const struct flows *f, uint32_t flow)
{
	const struct acl *d = f->acl;

	return d->percent && acl_denies_place(d, flow % d->places) ? 0 : f->lost[flow];
}

/* Finds the flows that lost most, in order; returns their number. */
static unsigned find_worst(const struct flows *f, uint32_t flows[FLOWS_NAMED])
{
	unsigned n = 0;

	for (uint32_t flow = 0; flow < f->pattern->flows; flow++) {
		unsigned place = n;

		while (place && lost_frames(f, flow) > lost_frames(f, flows[place - 1]))
			place--;
		if (!lost_frames(f, flow) || place == FLOWS_NAMED)
			continue;
		n += n < FLOWS_NAMED;
		for (unsigned i = n - 1; i > place; i--)
			flows[i] = flows[i - 1];
		flows[place] = flow;
	}
	return n;
}

void flows_json(const struct flows *f, struct json *j)
{
	uint32_t named[FLOWS_NAMED];
	uint64_t lossy = 0;
	unsigned n = find_worst(f, named);

	for (uint32_t flow = 0; flow < f->pattern->flows; flow++)
		lossy += lost_frames(f, flow) != 0;
	json_u64(j, "flows", f->pattern->flows);
	json_u64(j, "lossy_flows", lossy);
	json_open(j, "worst_flows", '[');
	for (unsigned i = 0; i < n; i++) {
		json_open(j, NULL, '[');
		json_u64(j, NULL, named[i]);
		json_u64(j, NULL, lost_frames(f, named[i]));
		json_close(j, ']');
	}
	json_close(j, ']');
}
