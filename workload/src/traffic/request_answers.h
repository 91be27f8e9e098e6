/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of a client of requests: which request each answer belongs to, and whether it is right. */
#ifndef ICBENCH_REQUEST_ANSWERS_H
#define ICBENCH_REQUEST_ANSWERS_H

#include <stdbool.h>

#include "traffic/request_client.h"

/* Whether the answer to a request is the request itself. */
static inline bool request_is_echo(const struct request_client *a)
{
	return protocol_echoes(a->r->o->protocol);
}

/* Whether requests and answers can be lost or reordered. */
static inline bool request_is_udp(const struct request_client *a)
{
	return a->r->o->protocol == PROTOCOL_UDP;
}

/* Processes what a connection has received, without waiting. */
void request_client_receive(struct request_client *a, struct request_connection *c);

#endif
