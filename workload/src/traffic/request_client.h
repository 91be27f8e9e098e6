/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of requests: it asks at a fixed rate, whether or not the server has answered (open loop), and
 * times each answer from the moment for which its request was intended. At rate 0 a connection asks again
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

/* Requests of one connection that can wait for their answers. */
#define REQUEST_DEPTH 4096u

struct pending_request {
	uint64_t intended, sent; /* cycles; sent 0: of a datagram that was answered */
};

struct request_connection {
	int fd;
	uint64_t head, tail; /* numbers of the oldest request without an answer, and of the next one */
	struct pending_request *waiting; /* by number modulo REQUEST_DEPTH */
	uint8_t *out;                    /* the request */
	size_t out_sent;                 /* bytes of it that have left; all of them between requests */
	uint8_t *in;
	size_t in_used;
};

struct request_client {
	struct run *r;
	struct pace pace;
	struct request_connection *connections;
	int epoll;
	size_t request_length, in_size;
	uint8_t *first_body; /* every value has to be the first one */
	bool first_known;
	uint64_t scheduled, sent, answered, wrong, late, not_offered, payload;
	uint64_t last_sent, last_answer;             /* cycles */
	struct histogram intended, actual, lateness; /* ns */
};

/* Connects. False and a sentence in err on failure; request_client_free() in either case. */
bool request_client_init(struct request_client *a, struct run *r, char *err, size_t err_len);
void request_client_free(struct request_client *a);

/* Asks for --duration from r->start on, and waits for the last answers, --drain at most. */
void request_client_run(struct request_client *a);

/* The counters and histograms of a summary. */
void request_client_json(struct request_client *a, struct json *j);

#endif
