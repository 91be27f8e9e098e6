/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the kernel from answering TCP frames that a raw socket or a DPDK port receives as well: it knows no
 * such connection, and would send a reset for each.
 */
#ifndef ICBENCH_RST_GUARD_H
#define ICBENCH_RST_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "io/io.h"

/* *fd is what keeps the kernel silent until it is closed; -1 where it would not answer anyway. False and a
 * sentence on failure. */
bool rst_guard_open(const struct io_config *c, int *fd, char *err, size_t err_len);

#endif
