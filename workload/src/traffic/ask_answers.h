/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client of requests receives: to which request each answer belongs, and whether it is right. */
#ifndef ICBENCH_ASK_ANSWERS_H
#define ICBENCH_ASK_ANSWERS_H

#include <stdbool.h>

#include "traffic/ask.h"

/* Whether the answer to a request is the request itself. */
static inline bool ask_is_echo(const struct ask *a)
{
	return a->r->o->protocol <= PROTOCOL_TCP;
}

/* Whether requests and answers may be lost, and come in any order. */
static inline bool ask_is_udp(const struct ask *a)
{
	return a->r->o->protocol == PROTOCOL_UDP;
}

/* Takes in what a connection has received, without waiting. */
void ask_receive(struct ask *a, struct ask_connection *c);

#endif
