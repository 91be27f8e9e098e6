/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and stop of a run: signals, and lines on stdin with --supervised. */
#ifndef ICBENCH_CONTROL_H
#define ICBENCH_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum stop_reason { STOP_NONE, STOP_LINE, STOP_SIGNAL, STOP_EOF };

extern atomic_int control_stop_reason;

/* Set by a signal after a stop was requested: end without draining or waiting. */
extern volatile bool control_abandon;

/* Handles SIGINT and SIGTERM and ignores SIGPIPE; with `supervised` starts the thread that reads stdin.
 * Returns 0 or an errno. */
int control_init(bool supervised);

static inline bool control_stopped(void)
{
	return atomic_load_explicit(&control_stop_reason, memory_order_relaxed) != STOP_NONE;
}

/* Whether `start` has been read; at_ns is its argument (CLOCK_MONOTONIC), 0 if it had none. */
bool control_started(uint64_t *at_ns);

/* Waits until `start` has been read or a stop was requested. */
void control_wait_start(void);

/* Returns how many lines `go` have been read. */
unsigned control_steps(void);

/* Whether `counters` has been read since the last call. An application without counters ignores the line. */
bool control_counters_asked(void);

/* Whether `measure` has been read since the last call. */
bool control_measure_asked(void);

/* Processes one line, without newline. For the stdin thread and the fuzzer. */
void control_line(const char *line);

#endif
