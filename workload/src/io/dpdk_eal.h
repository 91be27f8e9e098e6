/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's environment: started once a process, whatever the number of its ports. */
#ifndef ICBENCH_DPDK_EAL_H
#define ICBENCH_DPDK_EAL_H

#include <stdbool.h>
#include <stddef.h>

/* eal_argc/eal_argv: what stood behind "--". With a socket the virtual device among them is made once that is
 * there. False, and a sentence in err, if it does not start or finds no
 * port. */
bool dpdk_eal_start(int eal_argc, char **eal_argv, const char *await_socket, char *err, size_t err_len);
void dpdk_eal_stop(void);

/* Writes a sentence into err; returns false. */
bool dpdk_fail(char *err, size_t err_len, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
