/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line of every application: one table gives types, ranges, parsing and --help. */
#ifndef ICBENCH_OPTIONS_H
#define ICBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/denied.h"
#include "base/frame.h"
#include "base/shape.h"
#include "option/application.h"

enum io_kind { IO_UDP, IO_RAW, IO_XDP, IO_DPDK, IO_NULL };
/* What a request and its answer are. The first two are echoes: the answer is the request. */
enum protocol {
	PROTOCOL_UDP,
	PROTOCOL_TCP,
	PROTOCOL_RESP,
	PROTOCOL_MEMCACHED,
	PROTOCOL_HTTP,
	PROTOCOLS, /* how many there are */
};
enum fault_kind { FAULT_NONE, FAULT_DROP, FAULT_DUPLICATE, FAULT_REORDER };

/* The largest frame without VLAN tag on a link with an MTU of 1500, with FCS: for which those that carry
 * frames of any kind have room unless told otherwise. */
#define OPTIONS_LARGEST_FRAME 1518u
/* Frames of one burst. */
#define IO_BURST_MAX 1024u
/* Queue pairs of a port. */
#define QUEUES_MAX 16u
/* Seconds of a trace of rates. */
#define TRACE_MAX 3600u
/* Ports of one forwarder. */
#define FORWARD_PORTS_MAX 32u

struct options {
	const struct application *app;
	const char *app_name; /* as typed, "dpdk-send" */
	enum io_kind io;
	struct frame_ends ends;
	double rate_pps; /* 0: maximum */
	double trace[TRACE_MAX];
	uint32_t trace_seconds;    /* rates in it, each for a second; 0: the rate stays */
	uint32_t packet_size;      /* bytes, with FCS; of the longest frame */
	struct shape shape;        /* with --sizes */
	struct denied denied;      /* of the frames that it sends */
	struct denied peer_denied; /* of those that it counts */
	uint32_t burst;
	const char *raw_interface; /* the last one given */
	const char *raw_interfaces[FORWARD_PORTS_MAX];
	uint32_t raw_interface_count; /* may be beyond the array: too many */
	const char *xdp_interface;
	bool mmsg, gso, blocking, touch, silent, supervised;
	double duration_s, warmup_s, window_s, drain_s;
	uint64_t count;
	uint32_t yield_every, catch_up, ring, queues, histogram_digits;
	uint32_t train_from, train_to, train_steps; /* frames, frames, lengths; 0: no trains */
	uint16_t stream_id;
	uint16_t peer_stream; /* the stream to count; 0: the same */
	enum fault_kind fault;
	uint32_t fault_every;
	const char *file;         /* of replay and capture */
	const char *await_socket; /* of a DPDK port's virtual device */
	const char *capture_file; /* of a replay that captures, too */
	uint64_t loop;            /* passes through the file, 0: without end */
	bool timing, step;
	bool swap;       /* forwarders only, to the end */
	bool accounts;   /* looks at every frame, so that control frames are told from data */
	double delay_us; /* 0: none */
	uint32_t delay_queue, drop_every, duplicate_every, reorder_every, cost_cycles;
	uint32_t only;          /* which port of a pair drop, reorder and duplicate are for: 1, 2; 0: both */
	enum protocol protocol; /* ask and echo only, to the end */
	uint32_t connections, message;
	const char *key;
	int eal_argc; /* what stood behind "--" */
	char **eal_argv;
};

/* Whether frames pass a socket, which a blocking call can wait for. */
static inline bool io_is_socket(const struct options *o)
{
	return o->io == IO_UDP || o->io == IO_RAW || o->io == IO_XDP;
}

static inline uint16_t options_counted_stream(const struct options *o)
{
	return o->peer_stream ? o->peer_stream : o->stream_id;
}

/* The port that frames have to be for; 0 is any: a denied one that passed may be for another. */
static inline uint16_t options_heard_port(const struct options *o)
{
	return o->peer_denied.port ? 0 : o->ends.udp_port;
}

enum options_outcome {
	OPTIONS_RUN,      /* o is complete */
	OPTIONS_HELP,     /* --help was asked for; o->app and o->app_name are set or NULL */
	OPTIONS_VERSION,  /* --version was asked for */
	OPTIONS_LIST,     /* --options was asked for */
	OPTIONS_PAUSE,    /* the application is `pause` */
	OPTIONS_DISTANCE, /* the application is `distance` */
	OPTIONS_BAD,      /* err holds one sentence */
};

extern const char *const PROTOCOL_NAMES[PROTOCOLS];

/* Parses a whole command line for one of `apps` (NULL behind the last); argv[0] may be an application's name
 * too. o keeps pointers into argv. */
enum options_outcome options_parse(struct options *o, const struct application *const apps[], int argc,
        char **argv, char *err, size_t err_len);

/* "send, recv, client" and so on, cut to size. */
void options_app_names(const struct application *const apps[], char *text, size_t size);

/* Usage of o->app, or of all, and the table. */
void options_help(FILE *out, const struct application *const apps[], const struct options *o);

/* The table as lines of JSON: name, letter and argument; of a number also its default, least, greatest and
 * unit. */
void options_print(FILE *out);

#endif
