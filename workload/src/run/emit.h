/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes lines without ever making the data path wait for a reader.
 *
 * A line that fits into the pipe leaves whole, in one non-blocking write; what does not fit is kept, in
 * order.
 */
#ifndef ICBENCH_EMIT_H
#define ICBENCH_EMIT_H

#include <stdbool.h>
#include <stddef.h>

struct emit {
	int fd;
	bool hold; /* keep every window line back until the end */
	bool made_nonblocking;
	bool broken; /* the reader is gone */
	char *kept;  /* complete lines, oldest first */
	size_t kept_start, kept_end, kept_capacity;
	unsigned long held_lines;
};

/* Pipes and sockets become non-blocking until emit_close(). */
void emit_init(struct emit *e, int fd, bool hold);

/* A line that may wait, newline included. */
void emit_line(struct emit *e, const char *line, size_t length);

/* A line for which the caller can wait (hello, ready, summary), after all that was kept. *give_up, when it
 * becomes true (a signal handler's doing), ends the waiting. */
void emit_line_now(struct emit *e, const char *line, size_t length, const volatile bool *give_up);

/* Puts the descriptor back as it was and frees what was kept. */
void emit_close(struct emit *e);

#endif
