/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: which one a moment belongs to, and what is counted in each. */
#ifndef ICBENCH_WINDOW_H
#define ICBENCH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/loop_meter.h"

struct json;
struct clock;

#define WINDOW_COUNT (FRAME_WINDOW_LAST + 1)

/* Where a sender stands in its windows; all times in cycles. */
struct window_cursor {
	uint64_t start_of_run;
	long double warmup, length, run; /* unrounded: no window gains or loses a burst to rounding */
	uint16_t last;                   /* number of the last window */
	uint16_t number;                 /* the current one; 0 is the warm-up */
	uint64_t start, end;             /* of the current one */
};

/* hz: cycles per second; the others in seconds. duration 0: no end but that of the numbers. Without warm-up
 * the first window is 1. */
void window_start(
        struct window_cursor *c, uint64_t start, uint64_t hz, double warmup, double length, double duration);

/* Moves on to the next window; false if that was the last. */
bool window_next(struct window_cursor *c);

struct window_tx {
	uint64_t start_ns, duration_ns;
	uint64_t scheduled, sent, refused, not_offered, tx_full, catch_up_max;
	uint64_t lateness_p99_ns, lateness_max_ns;
	uint64_t yields, involuntary_switches;
	uint64_t bursts;     /* hand-overs of which the port took something */
	uint64_t full_turns; /* turns of SENDER_TURN frames in which the port refused any */
	uint64_t denied;     /* of those sent: of denied flows */
	struct loop_meter_cycles cycles;
};

struct window_rx {
	uint64_t received, bytes, duplicated, reordered, polls, empty_polls;
	uint64_t reflected, refused; /* servers */
	uint64_t first, last;        /* cycles; 0 if nothing came */
	uint64_t involuntary_switches;
	struct loop_meter_cycles cycles; /* not of clients: their one thread is counted as a sender */
};

/* Adds counters, and takes the maximum of maxima. */
void window_tx_add(struct window_tx *total, const struct window_tx *w);
void window_rx_add(struct window_rx *total, const struct window_rx *w);

/* Begins the line of a window of who sends: role, stream, number, start, length and the sender's counters. */
void window_begin_json(
        struct json *j, const char *role, uint16_t stream, uint16_t number, const struct window_tx *w);
/* The counters as JSON keys; times and percentiles are the caller's. */
void window_tx_json(struct json *j, const struct window_tx *w);
void window_rx_json(struct json *j, const struct window_rx *w);
/* busy_cycles, idle_cycles, gap_ns and gap_count; null where `known` is false. */
void window_cycles_json(
        struct json *j, const struct clock *clock, const struct loop_meter_cycles *cycles, bool known);

#endif
