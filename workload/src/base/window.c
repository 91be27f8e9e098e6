/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/window.h"

#include <math.h>

#include "base/clock.h"
#include "base/json.h"

void window_start(
        struct window_cursor *c, uint64_t start, uint64_t hz, double warmup, double length, double duration)
{
	*c = (struct window_cursor){.start_of_run = start, .last = FRAME_WINDOW_LAST};
	c->warmup = (long double)warmup * (long double)hz;
	c->length = (long double)length * (long double)hz;
	c->run = c->warmup + (duration > 0 ? (long double)duration * (long double)hz : INFINITY);
	if (duration > 0) {
		/* 0.3 / 0.1 is slightly above 3 in binary; an additional empty window must not follow. */
		double windows = ceil(duration / length - 1e-6);

		c->last = windows < FRAME_WINDOW_LAST ? (uint16_t)windows : FRAME_WINDOW_LAST;
		c->last = c->last ? c->last : 1;
	}
	c->start = start;
	c->end = start + (uint64_t)c->warmup;
	if (c->end == start)
		window_next(c);
}

bool window_next(struct window_cursor *c)
{
	long double end;

	if (c->number == c->last)
		return false;
	c->number++;
	c->start = c->end;
	end = c->warmup + c->number * c->length;
	c->end = c->start_of_run + (uint64_t)(c->number == c->last && end > c->run ? c->run : end);
	return true;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_cycles(struct loop_meter_cycles *total, const struct loop_meter_cycles *more)
{
	total->busy += more->busy;
	total->idle += more->idle;
	total->frames += more->frames;
	total->gap += more->gap;
	total->gaps += more->gaps;
	total->busy_gap += more->busy_gap;
}

void window_tx_add(struct window_tx *total, const struct window_tx *w)
{
	total->scheduled += w->scheduled;
	total->sent += w->sent;
	total->refused += w->refused;
	total->not_offered += w->not_offered;
	total->tx_full += w->tx_full;
	total->catch_up_max = larger(total->catch_up_max, w->catch_up_max);
	total->lateness_max_ns = larger(total->lateness_max_ns, w->lateness_max_ns);
	total->yields += w->yields;
	total->full_turns += w->full_turns;
	total->bursts += w->bursts;
	total->acl_drops += w->acl_drops;
	total->involuntary_switches += w->involuntary_switches;
	total->cpu_ns += w->cpu_ns;
	add_cycles(&total->cycles, &w->cycles);
}

void window_rx_add(struct window_rx *total, const struct window_rx *w)
{
	total->received += w->received;
	total->bytes += w->bytes;
	total->duplicated += w->duplicated;
	total->reordered += w->reordered;
	total->polls += w->polls;
	total->empty_polls += w->empty_polls;
	total->reflected += w->reflected;
	total->refused += w->refused;
	total->involuntary_switches += w->involuntary_switches;
	total->cpu_ns += w->cpu_ns;
	add_cycles(&total->cycles, &w->cycles);
}

void window_begin_json(
        struct json *j, const char *role, uint16_t stream, uint16_t number, const struct window_tx *w)
{
	json_begin_line(j, "window");
	json_string(j, "role", role);
	json_u64(j, "stream", stream);
	json_u64(j, "window", number);
	json_u64(j, "start_ns", w->start_ns);
	json_u64(j, "duration_ns", w->duration_ns);
	window_tx_json(j, w);
}

void window_tx_json(struct json *j, const struct window_tx *w)
{
	json_u64(j, "scheduled", w->scheduled);
	json_u64(j, "sent", w->sent);
	json_u64(j, "refused", w->refused);
	json_u64(j, "not_offered", w->not_offered);
	json_u64(j, "tx_full", w->tx_full);
	json_u64(j, "catch_up_max", w->catch_up_max);
	json_u64(j, "lateness_p99_ns", w->lateness_p99_ns);
	json_u64(j, "lateness_max_ns", w->lateness_max_ns);
	json_u64(j, "yields", w->yields);
	json_u64(j, "bursts", w->bursts);
	json_u64(j, "full_turns", w->full_turns);
	json_u64(j, "acl_drops", w->acl_drops);
}

void window_rx_json(struct json *j, const struct window_rx *w)
{
	json_u64(j, "received", w->received);
	json_u64(j, "bytes", w->bytes);
	json_u64(j, "duplicated", w->duplicated);
	json_u64(j, "reordered", w->reordered);
	json_u64(j, "polls", w->polls);
	json_u64(j, "empty_polls", w->empty_polls);
}

void window_cycles_json(
        struct json *j, const struct clock *clock, const struct loop_meter_cycles *cycles, bool known)
{
	if (known) {
		json_u64(j, "busy_cycles", cycles->busy);
		json_u64(j, "idle_cycles", cycles->idle);
		json_u64(j, "gap_ns", clock_cycles_to_ns(clock, cycles->gap));
		json_u64(j, "gap_count", cycles->gaps);
	} else {
		json_null(j, "busy_cycles");
		json_null(j, "idle_cycles");
		json_null(j, "gap_ns");
		json_null(j, "gap_count");
	}
}
