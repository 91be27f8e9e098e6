/* SPDX-License-Identifier: BSD-3-Clause */
/* Output into a pipe without a reader: no line is lost, split or out of order, and no call waits. */
#include "run/output.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "check.h"

#define LINES 3000u

static const volatile bool GO_ON = false, GIVE_UP = true;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t make_line(char *line, size_t size, unsigned i)
{
	return (size_t)snprintf(
	        line, size, "{\"line\":%u,\"padding\":\"%*s\"}\n", i, (int)(50 + i % 150), "x");
}

static void *read_all(void *arg)
{
	FILE *in = fdopen(*(int *)arg, "r");
	char line[70000];
	unsigned expected = 0, found;
	uintptr_t count = 0;

	while (fgets(line, sizeof(line), in)) {
		CHECK(sscanf(line, "{\"line\":%u,", &found) == 1);
		CHECK_EQUAL(found, expected);
		CHECK(strcmp(line + strlen(line) - 3, "\"}\n") == 0);
		expected++;
		count++;
	}
	fclose(in);
	return (void *)count;
}

/* Writes more lines than the pipe holds before they are read, then the last one, for which it may wait. */
static void full_pipe(bool hold)
{
	struct output e;
	pthread_t reader;
	void *count;
	char line[70000];
	int pipe_fd[2];
	double before = seconds();

	CHECK(pipe(pipe_fd) == 0);
	output_init(&e, pipe_fd[1], hold);
	CHECK(e.made_nonblocking);
	for (unsigned i = 0; i < LINES; i++)
		output_line(&e, line, make_line(line, sizeof(line), i));
	CHECK(seconds() - before < 5);
	CHECK(pthread_create(&reader, NULL, read_all, &pipe_fd[0]) == 0);
	/* The last line is longer than PIPE_BUF and than the pipe: partial writes must join up. */
	output_line_now(&e, line,
	        (size_t)snprintf(line, sizeof(line), "{\"line\":%u,\"%*s\"}\n", LINES, 69000, "x"), &GO_ON);
	CHECK(e.kept_start == e.kept_end);
	output_close(&e);
	CHECK((fcntl(pipe_fd[1], F_GETFL) & O_NONBLOCK) == 0);
	close(pipe_fd[1]);
	CHECK(pthread_join(reader, &count) == 0);
	CHECK_EQUAL((uintptr_t)count, LINES + 1);
}

static void held_lines_stay(void)
{
	struct output e;
	char byte;
	int pipe_fd[2];

	CHECK(pipe(pipe_fd) == 0);
	output_init(&e, pipe_fd[1], true);
	output_line(&e, "{}\n", 3);
	CHECK(fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK) == 0);
	CHECK(read(pipe_fd[0], &byte, 1) < 0);
	output_close(&e);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void one_write_a_line(void)
{
	struct output e;
	char text[64];
	int pipe_fd[2];

	CHECK(pipe2(pipe_fd, O_DIRECT) == 0); /* packet mode: each write is one read */
	output_init(&e, pipe_fd[1], false);
	output_line(&e, "{\"a\":1}\n", 8);
	output_line(&e, "{\"b\":22}\n", 9);
	CHECK_EQUAL(read(pipe_fd[0], text, sizeof(text)), 8);
	CHECK_EQUAL(read(pipe_fd[0], text, sizeof(text)), 9);
	output_close(&e);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void reader_gone(void)
{
	struct output e;
	int pipe_fd[2];

	CHECK(pipe(pipe_fd) == 0);
	output_init(&e, pipe_fd[1], false);
	close(pipe_fd[0]);
	output_line(&e, "{}\n", 3);
	CHECK(e.broken);
	output_line(&e, "{}\n", 3);
	output_line_now(&e, "{}\n", 3, &GO_ON);
	output_close(&e);
	close(pipe_fd[1]);
}

/* Without a reader, giving up ends the wait. */
static void giving_up(void)
{
	struct output e;
	char line[512];
	int pipe_fd[2];

	CHECK(pipe(pipe_fd) == 0);
	output_init(&e, pipe_fd[1], false);
	for (unsigned i = 0; i < LINES; i++)
		output_line(&e, line, make_line(line, sizeof(line), i));
	output_line_now(&e, "{}\n", 3, &GIVE_UP);
	CHECK(e.kept_end > e.kept_start);
	output_close(&e);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void json_text(void)
{
	struct json j = {0};

	json_begin_line(&j, "test");
	json_string(&j, "text", "a\"b\\c\n\x01");
	json_string(&j, "none", NULL);
	json_i64(&j, "minus", -1);
	json_u64(&j, "large", UINT64_MAX);
	json_bool(&j, "yes", true);
	json_double(&j, "half", 0.5);
	json_open(&j, "list", '[');
	json_open(&j, NULL, '[');
	json_u64(&j, NULL, 1);
	json_u64(&j, NULL, 2);
	json_close(&j, ']');
	json_open(&j, NULL, '{');
	json_close(&j, '}');
	json_close(&j, ']');
	json_null(&j, "last");
	json_end_line(&j);
	j.text[j.length - 1] = 0;
	CHECK(strcmp(j.text, "{\"schema\":1,\"type\":\"test\",\"text\":\"a\\\"b\\\\c\\u000a\\u0001\","
	                     "\"none\":null,\"minus\":-1,"
	                     "\"large\":18446744073709551615,\"yes\":true,\"half\":0.5,\"list\":[[1,2],{}],"
	                     "\"last\":null}") == 0);
	json_free(&j);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	full_pipe(false);
	full_pipe(true);
	held_lines_stay();
	one_write_a_line();
	reader_gone();
	giving_up();
	json_text();
	return 0;
}
