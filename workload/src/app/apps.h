/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of applications. Each is one loop, written once for all back ends. */
#ifndef ICBENCH_APPS_H
#define ICBENCH_APPS_H

#include "option/application.h"

/* ROW(name) stands for app_name in a file of that name. Applications are listed nowhere else. */
#define APPS(ROW)                                                                                            \
	ROW(send)                                                                                            \
	ROW(recv)                                                                                            \
	ROW(client)                                                                                          \
	ROW(server)                                                                                          \
	ROW(duplex)                                                                                          \
	ROW(replay)                                                                                          \
	ROW(capture)                                                                                         \
	ROW(forward)                                                                                         \
	ROW(ask)                                                                                             \
	ROW(echo)

#define APPS_DECLARE(name) extern const struct application app_##name;
APPS(APPS_DECLARE)

/* The rows; the last one is NULL. */
extern const struct application *const APPLICATIONS[];

/* Runs as the init process of a container: reaps children until SIGTERM or SIGINT. */
int app_pause(void);
/* Reads lines of pairs of CPUs from stdin until its end, and answers each with their distances. */
int app_distance(void);
/* Runs as the init process of a virtual machine; as another process of it, sets it up: see machine/setup.h.
 */
int app_guest(int argc, char **argv);
/* Runs a command in a virtual machine: a socket of its virtio-serial port, a CPU of it, the words. */
int app_relay(int argc, char **argv);

#endif
