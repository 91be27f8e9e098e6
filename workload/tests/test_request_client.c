/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of requests with a simulated server that answers at once. */
#include "traffic/request_client.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "check.h"
#include "io/stream.h"

#define MESSAGE 16u
#define DEPTH 256u

static struct {
	uint8_t messages[DEPTH][MESSAGE];
	unsigned head, tail;
} server;

/* Replaces io/stream.c: a sent datagram is its own answer. Nothing ends a sleep. */
int stream_connect(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len)
{
	(void)ip;
	(void)port;
	(void)err;
	(void)err_len;
	CHECK(datagrams);
	return eventfd(0, EFD_NONBLOCK);
}

long stream_send(int fd, const void *data, size_t n)
{
	(void)fd;
	CHECK_EQUAL(n, MESSAGE);
	CHECK(server.tail - server.head < DEPTH);
	memcpy(server.messages[server.tail++ % DEPTH], data, n);
	return (long)n;
}

long stream_receive(int fd, void *data, size_t n)
{
	(void)fd;
	CHECK(n >= MESSAGE);
	if (server.head == server.tail)
		return 0;
	memcpy(data, server.messages[server.head++ % DEPTH], MESSAGE);
	return MESSAGE;
}

int stream_listen(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len)
{
	(void)ip;
	(void)port;
	(void)datagrams;
	(void)err;
	(void)err_len;
	return -1;
}

int stream_accept(int listening)
{
	(void)listening;
	return -1;
}

static const struct options OPTIONS = {.app_name = "ask",
        .protocol = PROTOCOL_UDP,
        .connections = 1,
        .message = MESSAGE,
        .rate_pps = 10000,
        .duration_s = 0.09995, /* between two requests, wherever a cycle is rounded to */
        .drain_s = 1,
        .histogram_digits = 2};

/* A client that is late for all its requests, as after a stall. */
static void what_is_due_at_the_end_is_asked_for_at_once(void)
{
	struct run r = {.o = &OPTIONS};
	struct request_client a;
	char err[160];
	uint64_t began;

	clock_anchor(&r.clock);
	clock_calibrate(&r.clock);
	CHECK(request_client_init(&a, &r, err, sizeof(err)));
	began = clock_monotonic_ns();
	r.start = clock_cycles() - clock_ns_to_cycles(&r.clock, 0.2e9);
	request_client_run(&a);
	CHECK_EQUAL(a.sent, 1000);
	CHECK_EQUAL(a.answered, 1000);
	CHECK_EQUAL(a.not_offered, 0);
	CHECK(clock_monotonic_ns() - began < 900000000);
	request_client_free(&a);
}

static void standard_input_stays_open(void)
{
	struct run r = {.o = &OPTIONS};
	struct rlimit before, none;
	struct request_client a;
	char err[160];

	CHECK(open("/dev/null", O_RDONLY) >= 0); /* fd 0 is open, whatever the harness did */
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	clock_anchor(&r.clock);
	clock_calibrate(&r.clock);
	CHECK(!request_client_init(&a, &r, err, sizeof(err)));
	CHECK(strcmp(err, "out of memory or descriptors") == 0);
	request_client_free(&a);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(fcntl(0, F_GETFD) >= 0);
}

int main(void)
{
	what_is_due_at_the_end_is_asked_for_at_once();
	standard_input_stays_open();
	return 0;
}
