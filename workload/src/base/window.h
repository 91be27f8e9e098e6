/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: the window of a moment, and the counters of each window. */
#ifndef ICBENCH_WINDOW_H
#define ICBENCH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/loop_meter.h"

struct json;
struct clock;

#define WINDOW_COUNT (FRAME_WINDOW_LAST + 1)

/* A sender's position in its windows. All times are in cycles. */
struct window_cursor {
	uint64_t start_of_run;
	long double warmup, length, run; /* not rounded, so that no window gains or loses a burst */
	uint16_t last;                   /* number of the last window */
	uint16_t number;                 /* the current one; 0 is the warm-up */
	uint64_t start, end;             /* of the current one */
};

/* hz is in cycles per second, the other times are in seconds. duration 0: windows end when their numbers do.
 * Without a warm-up the first window is 1. */
void window_start(
        struct window_cursor *c, uint64_t start, uint64_t hz, double warmup, double length, double duration);

/* Advances to the next window. Returns false if the last one has ended. */
bool window_next(struct window_cursor *c);

struct window_tx {
	uint64_t start_ns, duration_ns;
	uint64_t scheduled, sent, refused, not_offered, tx_full, catch_up_max;
	uint64_t lateness_p99_ns, lateness_max_ns;
	uint64_t yields, involuntary_switches;
	uint64_t cpu_ns;     /* CPU time of all threads */
	uint64_t bursts;     /* bursts of which the port took at least one frame */
	uint64_t full_turns; /* turns of SENDER_TURN frames in which the port refused a frame */
	uint64_t acl_drops;  /* those of the sent frames that an ACL drops */
	struct loop_meter_cycles cycles;
};

struct window_rx {
	uint64_t received, bytes, duplicated, reordered, polls, empty_polls;
	uint64_t reflected, refused; /* servers */
	uint64_t first, last;        /* cycles; 0 if nothing arrived */
	uint64_t involuntary_switches, cpu_ns;
	struct loop_meter_cycles cycles; /* not for clients, whose only thread is counted as a sender */
};

/* Adds counters; takes the maximum of maxima. */
void window_tx_add(struct window_tx *total, const struct window_tx *w);
void window_rx_add(struct window_rx *total, const struct window_rx *w);

/* Begins a sending application's window line: role, stream, number, start, length and the sender's
 * counters. */
void window_begin_json(
        struct json *j, const char *role, uint16_t stream, uint16_t number, const struct window_tx *w);
/* Append the counters; times and percentiles are the caller's. */
void window_tx_json(struct json *j, const struct window_tx *w);
void window_rx_json(struct json *j, const struct window_rx *w);
/* Appends busy_cycles, idle_cycles, gap_ns and gap_count; null if not `known`. */
void window_cycles_json(
        struct json *j, const struct clock *clock, const struct loop_meter_cycles *cycles, bool known);

#endif
