/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lines a hot loop may catch up with at a time, so that a reader that wakes up does not stall it. */
#define CATCH_UP_LINES 4
#define WAIT_MS 100

void emit_init(struct emit *e, int fd, bool hold)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	*e = (struct emit){.fd = fd, .hold = hold};
	if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) && !(flags & O_NONBLOCK))
		e->made_nonblocking = fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void emit_close(struct emit *e)
{
	if (e->made_nonblocking)
		fcntl(e->fd, F_SETFL, fcntl(e->fd, F_GETFL) & ~O_NONBLOCK);
	free(e->kept);
	e->kept = NULL;
	e->kept_start = e->kept_end = e->kept_capacity = 0;
}

static void keep(struct emit *e, const char *line, size_t length)
{
	if (e->kept_start == e->kept_end)
		e->kept_start = e->kept_end = 0;
	if (e->kept_end + length > e->kept_capacity) {
		size_t capacity = (e->kept_end + length) * 2 + 65536;
		char *grown = realloc(e->kept, capacity);

		if (!grown) /* a lost progress line is better than a lost run */
			return;
		e->kept = grown;
		e->kept_capacity = capacity;
	}
	memcpy(e->kept + e->kept_end, line, length);
	e->kept_end += length;
	e->held_lines++;
}

/* One attempt to write the oldest kept line. False if it must wait longer. */
static bool write_oldest(struct emit *e)
{
	const char *start = e->kept + e->kept_start;
	size_t length = (size_t)((const char *)memchr(start, '\n', e->kept_end - e->kept_start) - start) + 1;
	ssize_t n = write(e->fd, start, length);

	if (n < 0) {
		if (errno == EPIPE || errno == EBADF || errno == EIO)
			e->broken = true;
		return false;
	}
	/* Beyond PIPE_BUF a write can be partial: the rest goes first next time. */
	e->kept_start += (size_t)n;
	return (size_t)n == length;
}

void emit_line(struct emit *e, const char *line, size_t length)
{
	if (e->broken)
		return;
	keep(e, line, length);
	if (e->hold)
		return;
	for (int i = 0; i < CATCH_UP_LINES && e->kept_start < e->kept_end; i++)
		if (!write_oldest(e))
			break;
}

void emit_line_now(struct emit *e, const char *line, size_t length, const volatile bool *give_up)
{
	if (e->broken)
		return;
	keep(e, line, length);
	while (e->kept_start < e->kept_end && !e->broken) {
		struct pollfd p = {.fd = e->fd, .events = POLLOUT};

		if (write_oldest(e) || e->broken)
			continue;
		if (*give_up)
			break;
		poll(&p, 1, WAIT_MS);
	}
}
