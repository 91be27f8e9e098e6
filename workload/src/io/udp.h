/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the back ends with UDP sockets. */
#ifndef ICBENCH_UDP_H
#define ICBENCH_UDP_H

#include <stdbool.h>
#include <stddef.h>

struct io_config;
struct sock;

/* Makes s a connected UDP socket with buffers for a burst. Returns false and a sentence in err on failure. */
bool udp_set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len);

#endif
