/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the applications that only answer to what comes: recv and server. */
#ifndef ICBENCH_RECEIVE_LOOP_H
#define ICBENCH_RECEIVE_LOOP_H

#include "traffic/receiver.h"

struct receive_loop {
	struct run *r;
	struct receiver rx;
	const char *role;
};

/* Accounts n > 0 frames and gives them back to the port. */
typedef void (*receive_burst)(
        struct receive_loop *s, const struct io_frame *frames, unsigned n, uint64_t now);

/* Polls until it is over, then writes windows and summary; returns an exit code. */
int serve(struct run *r, const char *role, receive_burst burst);

#endif
