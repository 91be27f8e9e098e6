/* SPDX-License-Identifier: BSD-3-Clause */
/* What every application has overhead its loop: port, clock, output, start and stop, control frames. */
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

/* The port's state after an I/O error: errno and which call failed. */
struct run_error {
	int number;
	const char *call;
};

struct run {
	const struct options *o;
	const struct io_ops *ops; /* NULL for a forwarder and for ask and echo: they open what they need */
	struct io *io;
	struct clock clock;
	struct output output;
	struct json json;
	struct run_error error;
	const char *packet_size_reason; /* what asked for it, if not the command line; else NULL */
	uint64_t start;                 /* cycles: when window 0 begins */
	uint64_t next_announce;         /* cycles */
	uint64_t cpu_ns_before;         /* when the loop began */
	uint64_t voluntary_before, involuntary_before;
	uint64_t awaited_ns; /* a receiver's start while it may sleep until then; UINT64_MAX: not known yet */
};

/* Sets everything up, runs the application's loop, and ends; returns the program's exit code. */
int run(struct options *o);

/* hello, up to json_end_line(), for a port with these facts; then run_write_line(). */
void run_begin_hello(struct run *r, const char *io_name, const struct io_facts *facts);
void run_write_ready(struct run *r, bool link_up, bool announced);
/* Ends the line in r->json and writes it, waiting for the reader. */
void run_write_line(struct run *r);
/* Begins to count CPU time and context switches for the summary. */
void run_begin_counting(struct run *r);

/* Waits for the start line of a supervised run; sets r->start. False if told to stop first. */
bool run_wait_start(struct run *r);
/* The same without the wait for a moment that is still to come: r->start can lie ahead. */
bool run_learn_start(struct run *r);
/* For receivers, whose polling begins with `ready`: r->start becomes the start line's time as soon as it is
 * known. True once it is. */
bool run_note_start(struct run *r);

/* Sends one control frame with that sequence number: 0 announces, n > 0 is the end mark for n-1 frames.
 * Tries for a few milliseconds if the port is full. False if it could not be sent. */
bool run_send_control(struct run *r, uint64_t sequence);
/* The same with one attempt. */
bool run_offer_control(struct run *r, uint64_t sequence);

/* Announces a receiver when it is time to (at the start and every 30 s). */
static inline bool run_announce_due(const struct run *r, uint64_t now)
{
	return now >= r->next_announce;
}
void run_announce(struct run *r);

/* Remembers a failed call; the loop then ends with reason "error". */
void run_failed(struct run *r, const char *call, int number);

/* Why the loop ended, for the summary: `own` unless an error or a stop came first. */
const char *run_reason(const struct run *r, const char *own);

/* Involuntary context switches of the calling thread so far. */
uint64_t run_involuntary_switches(void);

/* Adds cpu_ns and context switches to a summary and writes it out, waiting for the reader. */
void run_finish_summary(struct run *r);

#endif
