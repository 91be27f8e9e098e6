/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/flow_pattern.h"

#include <stdlib.h>

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Walker's alias method with Vose's filling of columns: a rich flow fills up the column of a poor one. */
static bool make_columns(struct flow_pattern *s)
{
	struct pattern_column *columns = calloc(s->flows, sizeof(*columns));
	double *share = calloc(s->flows, sizeof(*share)), sum = 0;
	uint32_t *stack = calloc(s->flows, sizeof(*stack)), poor = 0, rich = s->flows;

	if (!columns || !share || !stack) {
		free(columns);
		free(share);
		free(stack);
		return false;
	}
	for (uint32_t i = s->flows; i-- > 0;) /* smallest first, to lose no digit */
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < s->flows; i++) {
		share[i] = s->flows / (sum * (i + 1)); /* in columns */
		columns[i] = (struct pattern_column){UINT32_MAX, i};
		if (share[i] < 1)
			stack[poor++] = i;
		else
			stack[--rich] = i;
	}
	while (poor && rich < s->flows) {
		uint32_t from = stack[rich], to = stack[--poor];

		columns[to] = (struct pattern_column){(uint32_t)(share[to] * 4294967296.0), from};
		share[from] -= 1 - share[to];
		if (share[from] < 1) {
			rich++;
			stack[poor++] = from;
		}
	}
	free(share);
	free(stack);
	s->columns = columns;
	return true;
}

bool pattern_prepare(struct flow_pattern *s)
{
	uint32_t common;

	if (!s->flows)
		s->flows = 1;
	common = s->cycle ? common_divisor(s->flows, s->cycle) : 1;
	/* If sizes and flows restarted together, a flow would always have the same sizes. */
	s->turn = common > 1 ? (uint64_t)s->flows / common * s->cycle : 0;
	s->columns = NULL;
	return !s->zipf || !pattern_has_flows(s) || make_columns(s);
}

void pattern_free(struct flow_pattern *s)
{
	free((void *)(uintptr_t)s->columns);
	s->columns = NULL;
}

uint32_t pattern_shortest(const struct flow_pattern *s, uint32_t otherwise)
{
	uint32_t least = otherwise;

	for (uint32_t i = 0; i < s->cycle; i++)
		least = s->sizes[i] < least ? s->sizes[i] : least;
	return least;
}

uint64_t pattern_bytes(const struct flow_pattern *s, uint64_t frames, uint32_t otherwise)
{
	uint64_t whole = 0, rest = 0;

	if (!s->cycle)
		return frames * otherwise;
	for (uint32_t i = 0; i < s->cycle; i++) {
		whole += s->sizes[i];
		rest += i < frames % s->cycle ? s->sizes[i] : 0;
	}
	return frames / s->cycle * whole + rest;
}
