/* SPDX-License-Identifier: BSD-3-Clause */
/* The echo server: sends back what it receives, and answers `stats` with the number of its answers. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/apps.h"
#include "io/stream.h"
#include "run/run.h"

#define STATS "stats\n"
#define BUFFER_BYTES 65536u
/* A stop takes effect at once, unless its signal arrives just before the sleep. */
#define SLEEP_MS 500
#define EVENTS 64
/* Datagrams between two checks for a stop. */
#define AT_ONCE 64u

struct connection {
	LIST_ENTRY(connection) others;
	int fd;
	uint64_t received;
	size_t held, held_from; /* bytes that the socket has not taken yet, and their offset */
	bool waits;             /* for room; nothing is read meanwhile */
	uint8_t buffer[BUFFER_BYTES];
};

struct echo {
	struct run *r;
	int epoll, listening;
	LIST_HEAD(connections, connection) connections;
	uint64_t bytes, datagrams;
};

static uint64_t answered(const struct echo *e)
{
	return e->r->o->protocol == PROTOCOL_UDP ? e->datagrams : e->bytes / e->r->o->message;
}

static bool watch(const struct echo *e, int operation, int fd, uint32_t events, void *whom)
{
	struct epoll_event event = {.events = events, .data.ptr = whom};

	return epoll_ctl(e->epoll, operation, fd, &event) == 0;
}

static void hang_up(struct connection *c)
{
	LIST_REMOVE(c, others);
	close(c->fd);
	free(c);
}

/* Sends the held bytes. Returns false if the connection has ended. */
static bool send_held(struct echo *e, struct connection *c)
{
	long n = stream_send(c->fd, c->buffer + c->held_from, c->held);

	if (n < 0)
		return false;
	e->bytes += (uint64_t)n;
	c->held_from += (size_t)n;
	c->held -= (size_t)n;
	if (c->waits == (c->held != 0))
		return true;
	c->waits = c->held != 0;
	return watch(e, EPOLL_CTL_MOD, c->fd, c->waits ? EPOLLOUT : EPOLLIN, c);
}

static bool asks_stats(const uint8_t *data, long n)
{
	return n == sizeof(STATS) - 1 && memcmp(data, STATS, (size_t)n) == 0;
}

static size_t stats(const struct echo *e, char *text, size_t size)
{
	return (size_t)snprintf(text, size, "answered %llu\n", (unsigned long long)answered(e));
}

/* Echoes what has arrived. Returns false if the connection has ended. */
static bool echo_stream(struct echo *e, struct connection *c)
{
	char text[48];
	long n = stream_receive(c->fd, c->buffer, sizeof(c->buffer));

	if (n <= 0)
		return n == 0;
	if (!c->received && asks_stats(c->buffer, n)) {
		stream_send(c->fd, text, stats(e, text, sizeof(text)));
		return false;
	}
	c->received += (uint64_t)n;
	c->held_from = 0;
	c->held = (size_t)n;
	return send_held(e, c);
}

static void echo_datagrams(struct echo *e)
{
	static uint8_t buffer[BUFFER_BYTES];

	for (unsigned i = 0; i < AT_ONCE; i++) {
		struct sockaddr_in from;
		socklen_t length = sizeof(from);
		ssize_t n =
		        recvfrom(e->listening, buffer, sizeof(buffer), 0, (struct sockaddr *)&from, &length);
		bool asked = asks_stats(buffer, n);

		if (n < 0)
			return;
		if (asked)
			n = (ssize_t)stats(e, (char *)buffer, sizeof(buffer));
		if (sendto(e->listening, buffer, (size_t)n, 0, (struct sockaddr *)&from, length) == n)
			e->datagrams += !asked;
	}
}

static void admit(struct echo *e)
{
	int fd = stream_accept(e->listening);
	struct connection *c = fd < 0 ? NULL : malloc(sizeof(*c));

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	LIST_INSERT_HEAD(&e->connections, c, others);
	c->fd = fd;
	c->received = 0;
	c->held = c->held_from = 0;
	c->waits = false;
	if (!watch(e, EPOLL_CTL_ADD, fd, EPOLLIN, c))
		hang_up(c);
}

static void serve(struct echo *e)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(e->epoll, events, EVENTS, SLEEP_MS);

	if (n < 0 && errno != EINTR)
		run_failed(e->r, "epoll_wait", errno);
	for (int i = 0; i < n; i++) {
		struct connection *c = events[i].data.ptr;

		if (!c && e->r->o->protocol == PROTOCOL_UDP)
			echo_datagrams(e);
		else if (!c)
			admit(e);
		else if (!(c->held ? send_held(e, c) : echo_stream(e, c)))
			hang_up(c);
	}
}

static int loop(struct run *r)
{
	const struct options *o = r->o;
	struct echo e = {.r = r};
	struct json *j = &r->json;
	char err[160] = "";

	e.listening = stream_listen(
	        o->io.ends.remote_ip, o->io.ends.udp_port, o->protocol == PROTOCOL_UDP, err, sizeof(err));
	if (e.listening < 0) {
		fprintf(stderr, "icbench-workload %s: %s\n", o->app_name, err);
		return EXIT_SETUP;
	}
	e.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (e.epoll < 0 || !watch(&e, EPOLL_CTL_ADD, e.listening, EPOLLIN, NULL))
		run_failed(r, "epoll", errno);
	run_begin_counting(r);
	while (!r->error.call && !control_stopped())
		serve(&e);
	while (!LIST_EMPTY(&e.connections))
		hang_up(LIST_FIRST(&e.connections));
	close(e.listening);
	close(e.epoll);
	json_begin_line(j, "summary");
	json_string(j, "role", "echo");
	json_string(j, "reason", run_reason(r, NULL));
	json_u64(j, "answered", answered(&e));
	run_finish_summary(r);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

static bool fits(const struct options *o, char *err, size_t err_len)
{
	if (protocol_echoes(o->protocol))
		return true;
	snprintf(err, err_len, "%.40s answers udp and tcp: start a server of %s instead", o->app_name,
	        PROTOCOL_NAMES[o->protocol]);
	return false;
}

const struct application app_echo = {.name = "echo", .sockets = true, .fits = fits, .loop = loop};
