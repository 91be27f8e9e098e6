/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes lines without making the data path wait for a reader.
 *
 * A line that fits into the pipe is written whole, in one non-blocking write. Other lines are kept, in order.
 */
#ifndef ICBENCH_OUTPUT_H
#define ICBENCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct output {
	int fd;
	bool hold; /* keep all window lines until the end */
	bool made_nonblocking;
	bool broken; /* the reader is gone */
	char *kept;  /* complete lines, oldest first */
	size_t kept_start, kept_end, kept_capacity;
	unsigned long held_lines;
};

/* Pipes and sockets become non-blocking until output_close(). */
void output_init(struct output *e, int fd, bool hold);

/* Writes a line, newline included, or keeps it. */
void output_line(struct output *e, const char *line, size_t length);

/* Writes a line for which the caller can wait (hello, ready, summary), after all kept lines. *give_up, set by
 * a signal handler, ends the wait. */
void output_line_now(struct output *e, const char *line, size_t length, const volatile bool *give_up);

/* Restores the descriptor and frees the kept lines. */
void output_close(struct output *e);

#endif
