/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of requests. It sends at a fixed rate whether or not the server has answered (open loop), and
 * times each answer from the intended moment of its request. At rate 0 a connection sends the next request
 * when it has its answer (closed loop).
 */
#ifndef ICBENCH_REQUEST_CLIENT_H
#define ICBENCH_REQUEST_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "request/codec.h"
#include "run/run.h"
#include "traffic/histogram.h"
#include "traffic/pace.h"

/* The number of requests of one connection that can wait for answers. */
#define REQUEST_DEPTH 4096u

struct pending_request {
	uint64_t intended, sent; /* cycles; sent is 0 for a datagram that was answered */
};

struct request_connection {
	int fd;
	uint64_t head, tail;             /* number of the oldest unanswered request, and of the next one */
	struct pending_request *waiting; /* by number modulo REQUEST_DEPTH */
	uint8_t *out;                    /* the request */
	size_t out_sent;                 /* bytes of it that were sent; all of them between requests */
	uint8_t *in;
	size_t in_used;
};

struct request_client {
	struct run *r;
	struct pace pace;
	struct request_connection *connections;
	int epoll;
	size_t request_length, in_size;
	uint8_t *first_body; /* every later value has to equal it */
	bool first_known;
	uint64_t scheduled, sent, answered, wrong, late, not_offered, payload;
	uint64_t last_sent, last_answer;             /* cycles */
	struct histogram intended, actual, lateness; /* ns */
};

/* Connects. Returns false and a sentence in err on failure; request_client_free() in either case. */
bool request_client_init(struct request_client *a, struct run *r, char *err, size_t err_len);
void request_client_free(struct request_client *a);

/* Sends requests for --duration from r->start on, then waits up to --drain for the last answers. */
void request_client_run(struct request_client *a);

/* Appends the counters and histograms of a summary. */
void request_client_json(struct request_client *a, struct json *j);

#endif
