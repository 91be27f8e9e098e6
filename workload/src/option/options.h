/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of every application. One table gives types, ranges, parsing and --help. */
#ifndef ICBENCH_OPTIONS_H
#define ICBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "io/backends.h"
#include "io/fault.h"
#include "option/application.h"
#include "request/codec.h"

/* Seconds of a trace of rates. */
#define TRACE_MAX 3600u

struct options {
	const struct application *app;
	const char *app_name; /* as typed, "dpdk-send" */
	const struct io_backend *backend;
	struct io_config io;
	const char *io_name;                       /* of --io */
	const char *raw_interface, *xdp_interface; /* the last of each */
	double rate_pps;                           /* 0: maximum */
	double trace[TRACE_MAX];                   /* a rate for each second */
	uint32_t trace_seconds;                    /* rates in the trace; 0: the rate stays */
	bool gso, silent, supervised;
	double duration_s, warmup_s, window_s, drain_s;
	uint64_t count;
	uint32_t yield_every, catch_up, histogram_digits;
	uint32_t train_from, train_to, train_steps; /* frames, frames, lengths; 0: no trains */
	struct fault fault;
	const char *file;         /* of replay and capture */
	const char *capture_file; /* of a replay that captures as well */
	uint64_t loop;            /* passes through the file; 0: without end */
	bool timing, step;
	bool swap;       /* from here on: forwarders only */
	bool accounts;   /* inspects every frame to count control frames separately */
	double delay_us; /* 0: none */
	uint32_t delay_queue, drop_every, duplicate_every, reorder_every, cost_cycles;
	uint32_t only; /* the port of a pair to which drop, reorder and duplicate apply: 1, 2; 0: both */
	enum protocol protocol; /* from here on: ask and echo only */
	uint32_t connections, message;
	const char *key;
};

enum options_outcome {
	OPTIONS_RUN,      /* o is complete */
	OPTIONS_HELP,     /* --help was given; o->app and o->app_name are set or NULL */
	OPTIONS_VERSION,  /* --version was given */
	OPTIONS_LIST,     /* --options was given */
	OPTIONS_PAUSE,    /* the application is `pause` */
	OPTIONS_DISTANCE, /* the application is `distance` */
	OPTIONS_GUEST,    /* the application is `guest` */
	OPTIONS_RELAY,    /* the application is `relay` */
	OPTIONS_BAD,      /* err holds one sentence */
};

/* Parses a whole command line for one of `apps`, whose last row is NULL. argv[0] may be an application's
 * name. o keeps pointers into argv. */
enum options_outcome options_parse(struct options *o, const struct application *const apps[], int argc,
        char **argv, char *err, size_t err_len);

/* Writes "send, recv, client" and so on, truncated to size. */
void options_app_names(const struct application *const apps[], char *text, size_t size);

/* Writes the usage of o->app, or of all applications, and the table. */
void options_help(FILE *out, const struct application *const apps[], const struct options *o);

/* Writes the table as lines of JSON: name, letter and argument; for a number also default, least, greatest
 * and unit. */
void options_print(FILE *out);

#endif
