/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the kernel from answering TCP frames that a raw socket or a DPDK port also receives. The kernel knows
 * no such connection, and would send a reset for each.
 */
#ifndef ICBENCH_RST_GUARD_H
#define ICBENCH_RST_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "io/io.h"

/* Opens a socket that keeps the kernel silent until it is closed, as *fd; -1 if the kernel would not answer
 * anyway. Returns false and a sentence in err on failure. */
bool rst_guard_open(const struct io_config *c, int *fd, char *err, size_t err_len);

#endif
