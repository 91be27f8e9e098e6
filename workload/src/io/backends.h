/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of back ends. A new back end is a file with its struct io_ops, a row in backends.c, and the
 * file's name in workload/meson.build.
 */
#ifndef ICBENCH_IO_BACKENDS_H
#define ICBENCH_IO_BACKENDS_H

#include "io/io.h"

enum io_flag {
	IO_SOCKET = 1 << 0,       /* a kernel socket: calls can block */
	IO_SHARED_QUEUE = 1 << 1, /* polling an empty socket delays its sender */
	IO_HEADERS = 1 << 2,      /* makes whole frames, so that any header and any flow can be sent */
	IO_ANY_FRAME = 1 << 3,    /* carries frames of any kind */
	IO_SEGMENTS = 1 << 4,     /* hands the kernel trains of datagrams */
	IO_QUEUES = 1 << 5,       /* several queue pairs */
	IO_EAL = 1 << 6,          /* a DPDK port */
	IO_LOCAL = 1 << 7,        /* frames never leave the process */
	IO_BY_NAME = 1 << 8,      /* is chosen by --io NAME */
};

struct io_backend {
	const char *name; /* on the command line; modes of one back end share it */
	unsigned flags;
	const struct io_ops *ops; /* NULL if it is not part of this build */
	const char *needs;        /* what such a build lacks and which package has it */
	/* Checks options that only this back end restricts. Returns false and a sentence in err if they do
	 * not fit. NULL: all do. */
	bool (*fits)(const struct io_config *c, char *err, size_t err_len);
};

/* The rows; the last one has no name. */
extern const struct io_backend io_backends[];

/* Returns the mode of that name that has most of the wanted flags, the first of several; NULL if there is
 * no such name. */
const struct io_backend *io_backend_find(const char *name, unsigned wanted);

/* DPDK's version as DPDK reports it; NULL in a build without DPDK. */
const char *io_dpdk_version(void);

#endif
