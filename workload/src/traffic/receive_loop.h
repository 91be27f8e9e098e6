/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the applications that only react to frames: recv and server. */
#ifndef ICBENCH_RECEIVE_LOOP_H
#define ICBENCH_RECEIVE_LOOP_H

#include "traffic/receiver.h"

struct receive_loop {
	struct run *r;
	struct receiver rx;
	const char *role;
};

/* Counts n > 0 frames and releases them. */
typedef void (*receive_burst)(
        struct receive_loop *s, const struct io_frame *frames, unsigned n, uint64_t now);

/* Polls until the end, then writes windows and summary. Returns an exit code. */
int serve(struct run *r, const char *role, receive_burst burst);

#endif
