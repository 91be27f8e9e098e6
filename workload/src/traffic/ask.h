/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of requests: it asks at a fixed rate, whether or not the server has answered (open loop), and
 * times each answer from the moment for which its request was intended. At rate 0 a connection asks again
 * when it has its answer (closed loop).
 */
#ifndef ICBENCH_ASK_H
#define ICBENCH_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "request/codec.h"
#include "run/run.h"
#include "traffic/pace.h"
#include "traffic/rtt.h"

/* Requests of one connection that can wait for their answers. */
#define ASK_DEPTH 4096u

struct ask_request {
	uint64_t intended, sent; /* cycles; sent 0: of a datagram that was answered */
};

struct ask_connection {
	int fd;
	uint64_t head, tail; /* numbers of the oldest request without an answer, and of the next one */
	struct ask_request *waiting; /* by number modulo ASK_DEPTH */
	uint8_t *out;                /* the request */
	size_t out_sent;             /* bytes of it that have left; all of them between requests */
	uint8_t *in;
	size_t in_used;
};

struct ask {
	struct run *r;
	struct pace pace;
	struct ask_connection *connections;
	int epoll;
	size_t request_length, in_size;
	uint8_t *first_body; /* every value has to be the first one */
	bool first_known;
	uint64_t scheduled, sent, answered, wrong, late, not_offered, payload;
	uint64_t last_sent, last_answer;       /* cycles */
	struct rtt intended, actual, lateness; /* ns */
};

/* Connects. False and a sentence in err on failure; ask_free() in either case. */
bool ask_init(struct ask *a, struct run *r, char *err, size_t err_len);
void ask_free(struct ask *a);

/* Asks for --duration from r->start on, and waits for the last answers, --drain at most. */
void ask_run(struct ask *a);

/* The counters and histograms of a summary. */
void ask_json(struct ask *a, struct json *j);

#endif
