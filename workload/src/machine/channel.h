/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over a virtio-serial port of a virtual machine, each a header and its bytes. One port carries one
 * process of the guest at a time. */
#ifndef ICBENCH_CHANNEL_H
#define ICBENCH_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest message without its header. */
#define CHANNEL_MAX 32768u
/* Ports are named by this and a number from 0. */
#define CHANNEL_NAME "icbench."
#define CHANNEL_COUNT 4u

enum channel_kind {
	CHANNEL_TIME,  /* asks for CLOCK_MONOTONIC of the guest; the answer has it in ns */
	CHANNEL_RUN,   /* the offset of the host's clock in ns (int64), then texts: a CPU, the command's words
	                */
	CHANNEL_INPUT, /* bytes for its standard input; none: its end */
	CHANNEL_SIGNAL, /* a signal's number (int32) */
	CHANNEL_OUTPUT, /* bytes of its standard output */
	CHANNEL_ERROR,  /* bytes of its standard error */
	CHANNEL_EXIT,   /* its status as of waitpid() (int32) */
};

struct channel {
	int fd;
	uint32_t id; /* of the connection: a message of an earlier one is ignored */
	size_t used;
	uint8_t in[2 * (CHANNEL_MAX + 64)];
};

struct message {
	enum channel_kind kind;
	uint32_t id;
	uint32_t length;
	const uint8_t *bytes; /* valid until more is read */
};

/* Writes a message of at most CHANNEL_MAX bytes. Waits while the port is full. Returns false if the other end
 * is gone. */
bool channel_send(struct channel *c, enum channel_kind kind, const void *bytes, size_t length);

/* Reads what has come. Returns false at the end of the connection. */
bool channel_fill(struct channel *c);

/* Takes the next whole message, if there is one. Bytes of a message that was cut off are skipped. */
bool channel_next(struct channel *c, struct message *m);

/* Removes the message that channel_next() returned. */
void channel_drop(struct channel *c, const struct message *m);

#endif
