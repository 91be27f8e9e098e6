/* SPDX-License-Identifier: BSD-3-Clause */
/* The XDP program that hands an AF_XDP socket its frames, and the link that attaches it to an interface. */
#ifndef ICBENCH_XDP_FILTER_H
#define ICBENCH_XDP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame.h"

/* It is detached when the link is closed, so a killed process leaves nothing behind. */
struct xdp_filter {
	int map, program, link; /* file descriptors, -1: none */
	bool native;            /* in the driver, before the kernel makes a socket buffer of a frame */
};

/* Attaches the program: what has the ends' headers (frame_checks()) goes to the queue's socket, all
 * else to the kernel's stack. Natively if the driver can, else generically. False and a sentence on failure.
 */
bool xdp_filter_open(struct xdp_filter *f, const char *interface, const struct frame_ends *ends, char *err,
        size_t err_len);

/* Has the frames of a queue go to a socket. False with errno. */
bool xdp_filter_set(const struct xdp_filter *f, uint32_t queue, int socket);

void xdp_filter_close(struct xdp_filter *f);

#endif
