/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications: one loop each, written once for all backends. Each returns an exit code. */
#ifndef ICBENCH_APPS_H
#define ICBENCH_APPS_H

struct run;

int app_send(struct run *r);
int app_recv(struct run *r);
int app_client(struct run *r);
int app_server(struct run *r);
int app_replay(struct run *r);
int app_capture(struct run *r);
int app_forward(struct run *r);

/* A container's init: reaps children until SIGTERM or SIGINT. */
int app_pause(void);

#endif
