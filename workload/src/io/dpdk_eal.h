/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's environment (EAL), started once for a process and all its ports. */
#ifndef ICBENCH_DPDK_EAL_H
#define ICBENCH_DPDK_EAL_H

#include <stdbool.h>
#include <stddef.h>

#include "io/io.h"

/* Starts EAL with the arguments of the config. With await_socket the virtual device among them is made as
 * soon as that socket exists. Returns false and a sentence in err if EAL does not start or finds no port. */
bool dpdk_eal_start(const struct io_config *c, char *err, size_t err_len);
void dpdk_eal_stop(void);

/* Writes a sentence to err and returns false. */
bool dpdk_fail(char *err, size_t err_len, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
