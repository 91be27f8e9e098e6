/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything outside the loop of an application: port, clock, output, start and stop, control frames. */
#ifndef ICBENCH_RUN_H
#define ICBENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "io/io.h"
#include "option/options.h"
#include "run/control.h"
#include "run/output.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 2,
	EXIT_SETUP = 3,
	EXIT_IO = 4,
	EXIT_LINK = 5,
	EXIT_CLOCK = 6,
};

/* An I/O error: errno and the call that failed. */
struct run_error {
	int number;
	const char *call;
};

struct run {
	const struct options *o;
	const struct io_ops *ops; /* NULL for forwarders, ask and echo, which open what they need */
	struct io *io;
	struct clock clock;
	struct output output;
	struct json json;
	struct run_error error;
	const char *packet_size_reason; /* what required it, if not the command line; else NULL */
	uint64_t start;                 /* cycles: when window 0 begins */
	uint64_t next_announce;         /* cycles */
	uint64_t cpu_ns_before;         /* at the beginning of the loop */
	uint64_t voluntary_before, involuntary_before;
	uint64_t moved; /* cycles: when a frame last arrived; adaptive endpoints poll for a while after it */
	uint64_t awaited_ns; /* start time until which a receiver may sleep; UINT64_MAX: not known yet */
};

/* Sets everything up and runs the application's loop. Returns the program's exit code. */
int run(struct options *o);

/* Begins the hello line for a port with these facts; run_write_line() ends it. */
void run_begin_hello(struct run *r, const char *io_name, const struct io_facts *facts);
void run_write_ready(struct run *r, bool link_up, bool announced);
/* Ends the line in r->json and writes it, waiting for the reader. */
void run_write_line(struct run *r);
/* Starts counting CPU time and context switches for the summary. */
void run_begin_counting(struct run *r);

/* Waits for the start of a supervised run and sets r->start. Returns false on a stop. */
bool run_wait_start(struct run *r);
/* The same without waiting for a future start time: r->start can be in the future. */
bool run_learn_start(struct run *r);
/* For receivers, which poll from `ready` on: sets r->start as soon as the start line is known. Returns
 * whether it is. */
bool run_note_start(struct run *r);

/* Sends one control frame with that sequence number: 0 announces, n > 0 is the end mark for n-1 frames.
 * Retries for a few milliseconds if the port is full. Returns false if it could not be sent. */
bool run_send_control(struct run *r, uint64_t sequence);
/* The same without retries. */
bool run_offer_control(struct run *r, uint64_t sequence);

/* Whether a receiver is due to announce itself (at the start and every 30 s). */
static inline bool run_announce_due(const struct run *r, uint64_t now)
{
	return now >= r->next_announce;
}
void run_announce(struct run *r);

/* Records a failed call; the loop then ends with the reason "error". */
void run_failed(struct run *r, const char *call, int number);

/* Returns why the loop ended: `own` unless an error or a stop came first. */
const char *run_reason(const struct run *r, const char *own);

/* Returns the involuntary context switches of the calling thread. */
uint64_t run_involuntary_switches(void);

/* Returns the CPU time of all threads of the process, in ns. */
uint64_t run_cpu_ns(void);

/* Returns how many nanoseconds an endpoint that has nothing to do sleeps before `until` (cycles); 0 if it
 * polls. */
uint64_t run_rest_ns(const struct run *r, uint64_t until);

/* Sleeps that long, or until one of the events (io.h). Returns the cycles that it took. */
uint64_t run_rest(struct run *r, unsigned events, uint64_t until);

/* Appends cpu_ns and context switches to a summary and writes it, waiting for the reader. */
void run_finish_summary(struct run *r);

#endif
