/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client of requests receives: to which request each answer belongs, and whether it is right. */
#ifndef ICBENCH_REQUEST_ANSWERS_H
#define ICBENCH_REQUEST_ANSWERS_H

#include <stdbool.h>

#include "traffic/request_client.h"

/* Whether the answer to a request is the request itself. */
static inline bool request_is_echo(const struct request_client *a)
{
	return protocol_echoes(a->r->o->protocol);
}

/* Whether requests and answers may be lost, and come in any order. */
static inline bool request_is_udp(const struct request_client *a)
{
	return a->r->o->protocol == PROTOCOL_UDP;
}

/* Takes in what a connection has received, without waiting. */
void request_client_receive(struct request_client *a, struct request_connection *c);

#endif
