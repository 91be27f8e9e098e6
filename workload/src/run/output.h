/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes lines without ever making the data path wait for a reader.
 *
 * A line that fits into the pipe leaves whole, in one non-blocking write; what does not fit is kept, in
 * order.
 */
#ifndef ICBENCH_OUTPUT_H
#define ICBENCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct output {
	int fd;
	bool hold; /* keep every window line back until the end */
	bool made_nonblocking;
	bool broken; /* the reader is gone */
	char *kept;  /* complete lines, oldest first */
	size_t kept_start, kept_end, kept_capacity;
	unsigned long held_lines;
};

/* Pipes and sockets become non-blocking until output_close(). */
void output_init(struct output *e, int fd, bool hold);

/* A line that may wait, newline included. */
void output_line(struct output *e, const char *line, size_t length);

/* A line for which the caller can wait (hello, ready, summary), after all that was kept. *give_up, when it
 * becomes true (a signal handler's doing), ends the waiting. */
void output_line_now(struct output *e, const char *line, size_t length, const volatile bool *give_up);

/* Puts the descriptor back as it was and frees what was kept. */
void output_close(struct output *e);

#endif
