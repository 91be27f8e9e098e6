/* SPDX-License-Identifier: BSD-3-Clause */
/* The XDP program that redirects frames to an AF_XDP socket, and the link that attaches it to an interface.
 */
#ifndef ICBENCH_XDP_FILTER_H
#define ICBENCH_XDP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame.h"

/* The program is detached when the link is closed, so a killed process leaves nothing attached. */
struct xdp_filter {
	int map, program, link; /* file descriptors, -1: none */
	bool native;            /* in the driver, before the kernel allocates a socket buffer */
};

/* Attaches the program: frames with the ends' headers (frame_checks()) go to the queue's socket, others to
 * the kernel's stack. Native mode if the driver supports it, otherwise generic. Returns false and a sentence
 * in err on failure. */
bool xdp_filter_open(struct xdp_filter *f, const char *interface, const struct frame_ends *ends, char *err,
        size_t err_len);

/* Redirects the frames of a queue to a socket. Returns false with errno. */
bool xdp_filter_set(const struct xdp_filter *f, uint32_t queue, int socket);

void xdp_filter_close(struct xdp_filter *f);

#endif
