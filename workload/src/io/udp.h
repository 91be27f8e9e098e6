/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the back ends with UDP sockets. */
#ifndef ICBENCH_UDP_H
#define ICBENCH_UDP_H

#include <stdbool.h>
#include <stddef.h>

#include "io/io.h"

struct sock;

/* Makes s a connected UDP socket with buffers for a burst. Returns false and a sentence in err on failure. */
bool udp_set_up(struct sock *s, const struct io_config *c, char *err, size_t err_len);

/* Operations (io.h) of a back end whose struct io begins with the connected socket. */
void udp_tx_resize(struct io *io, unsigned i, uint32_t bytes);
int udp_rx_poll(struct io *io, struct io_frame *frames, unsigned n);
int udp_rx_reflect(struct io *io, const bool *keep, unsigned n);

#endif
