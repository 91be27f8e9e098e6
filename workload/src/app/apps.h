/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of applications: one loop each, written once for all backends. */
#ifndef ICBENCH_APPS_H
#define ICBENCH_APPS_H

#include "option/application.h"

/* ROW(name) is app_name, in a file of that name. This is the only place where they are listed. */
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

/* The rows, then NULL. */
extern const struct application *const APPLICATIONS[];

/* A container's init: reaps children until SIGTERM or SIGINT. */
int app_pause(void);
/* Answers lines of pairs of CPUs on stdin by their distances, until its end. */
int app_distance(void);

#endif
