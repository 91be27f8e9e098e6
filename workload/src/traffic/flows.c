/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/flows.h"

#include <stdlib.h>

#include "base/json.h"

bool flows_init(struct flows *f, const struct shape *shape)
{
	*f = (struct flows){.shape = shape,
	        .next = calloc(shape->flows, sizeof(*f->next)),
	        .lost = calloc(shape->flows, sizeof(*f->lost))};
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
	struct shape_place at = shape_place(f->shape, first);

	for (unsigned i = 0; i < n; i++)
		f->next[shape_next_flow(f->shape, &at)] = first + i + 1;
}

bool flows_take_late(struct flows *f, uint64_t sequence)
{
	uint64_t *next = &f->next[shape_flow(f->shape, sequence)];

	if (*next > sequence)
		return true;
	*next = sequence + 1;
	return false;
}

void flows_note_lost(void *context, uint64_t sequence)
{
	struct flows *f = context;

	f->lost[shape_flow(f->shape, sequence)]++;
}

/* The flows that lost most, in their order; returns how many of them there are. */
static unsigned worst(const struct flows *f, uint32_t flows[FLOWS_NAMED])
{
	unsigned n = 0;

	for (uint32_t flow = 0; flow < f->shape->flows; flow++) {
		unsigned place = n;

		while (place && f->lost[flow] > f->lost[flows[place - 1]])
			place--;
		if (!f->lost[flow] || place == FLOWS_NAMED)
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
	unsigned n = worst(f, named);

	for (uint32_t flow = 0; flow < f->shape->flows; flow++)
		lossy += f->lost[flow] != 0;
	json_u64(j, "flows", f->shape->flows);
	json_u64(j, "lossy_flows", lossy);
	json_open(j, "worst_flows", '[');
	for (unsigned i = 0; i < n; i++) {
		json_open(j, NULL, '[');
		json_u64(j, NULL, named[i]);
		json_u64(j, NULL, f->lost[named[i]]);
		json_close(j, ']');
	}
	json_close(j, ']');
}
