/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/request_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/stream.h"
#include "traffic/client_times.h"
#include "traffic/request_answers.h"

/* A request that is this late is given up, like a frame of a client. */
#define BACKLOG_S 2.0
/* In ns. A sleep can end this late, so the rest of the wait for the next request polls. */
#define SPIN_NS 100000u
/* In ns. An answer is polled for this long; after that the client sleeps until it arrives. */
#define PATIENCE_NS 10e6
/* Requests that are sent before the next look for answers. */
#define AT_ONCE 64u
#define READ_BYTES 65536u
#define EVENTS 64

static bool open_connection(struct request_client *a, struct request_connection *c, char *err, size_t err_len)
{
	const struct options *o = a->r->o;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

	c->waiting = calloc(REQUEST_DEPTH, sizeof(*c->waiting));
	c->out = request_new(o->protocol, o->key, o->message, &a->request_length);
	c->in = malloc(a->in_size);
	if (!c->waiting || !c->out || !c->in) {
		snprintf(err, err_len, "out of memory for %u connections", o->connections);
		return false;
	}
	c->out_sent = a->request_length;
	c->fd = stream_connect(o->io.ends.remote_ip, o->io.ends.udp_port, request_is_udp(a), err, err_len);
	if (c->fd < 0)
		return false;
	if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, c->fd, &event) == 0)
		return true;
	snprintf(err, err_len, "cannot wait for a connection: %s", strerror(errno));
	return false;
}

bool request_client_init(struct request_client *a, struct run *r, char *err, size_t err_len)
{
	const struct options *o = r->o;
	bool ok;

	*a = (struct request_client){.r = r, .epoll = epoll_create1(EPOLL_CLOEXEC)};
	pace_init(&a->pace, r->clock.hz, o->rate_pps, 1, 0, clock_ns_to_cycles(&r->clock, BACKLOG_S * 1e9));
	a->in_size = READ_BYTES + CODEC_HEAD_MAX + o->message;
	a->first_body = malloc(o->message);
	a->connections = calloc(o->connections, sizeof(*a->connections));
	for (unsigned i = 0; a->connections && i < o->connections; i++)
		a->connections[i].fd = -1;
	ok = histogram_init(&a->intended, o->histogram_digits) &&
	     histogram_init(&a->actual, o->histogram_digits) && histogram_init(&a->lateness, 2);
	if (!ok || !a->first_body || !a->connections || a->epoll < 0) {
		snprintf(err, err_len, "out of memory or descriptors");
		return false;
	}
	for (unsigned i = 0; i < o->connections; i++)
		if (!open_connection(a, &a->connections[i], err, err_len))
			return false;
	prctl(PR_SET_TIMERSLACK, 1);
	return true;
}

void request_client_free(struct request_client *a)
{
	for (unsigned i = 0; a->connections && i < a->r->o->connections; i++) {
		struct request_connection *c = &a->connections[i];

		if (c->fd >= 0)
			close(c->fd);
		free(c->waiting);
		free(c->out);
		free(c->in);
	}
	free(a->connections);
	free(a->first_body);
	if (a->epoll >= 0)
		close(a->epoll);
	histogram_free(&a->intended);
	histogram_free(&a->actual);
	histogram_free(&a->lateness);
}

/* Sends the rest of a connection's request. Returns false if some of it is still left. */
static bool flush(struct request_client *a, struct request_connection *c)
{
	long n;

	if (c->out_sent == a->request_length)
		return true;
	n = stream_send(c->fd, c->out + c->out_sent, a->request_length - c->out_sent);
	if (n < 0)
		run_failed(a->r, "send", errno);
	else
		c->out_sent += (size_t)n;
	return c->out_sent == a->request_length;
}

/* Makes room for one more request. A lost datagram makes room for the next one. */
static bool has_room(struct request_client *a, struct request_connection *c)
{
	if (c->tail - c->head < REQUEST_DEPTH)
		return true;
	if (!request_is_udp(a))
		return false;
	c->head++;
	return true;
}

/* Sends a request that was due at `intended`. Returns false if the connection does not take it now. */
static bool offer(struct request_client *a, struct request_connection *c, uint64_t intended)
{
	uint64_t now;
	long n;

	if (!flush(a, c) || !has_room(a, c))
		return false;
	if (request_is_echo(a))
		message_number(c->out, c->tail);
	now = clock_cycles();
	n = stream_send(c->fd, c->out, a->request_length);
	if (n < 0)
		run_failed(a->r, "send", errno);
	if (n <= 0)
		return false;
	c->out_sent = (size_t)n;
	c->waiting[c->tail % REQUEST_DEPTH] = (struct pending_request){intended, now};
	c->tail++;
	a->sent++;
	a->last_sent = now;
	histogram_record(&a->lateness, clock_cycles_to_ns(&a->r->clock, now - intended), 1);
	return true;
}

static uint64_t unanswered(const struct request_client *a)
{
	return a->sent - a->answered - a->wrong;
}

/* Processes what has arrived. */
static void poll_answers(struct request_client *a)
{
	struct epoll_event events[EVENTS];
	int n;

	for (unsigned i = 0; i < a->r->o->connections; i++)
		flush(a, &a->connections[i]);
	if (a->r->o->connections == 1) {
		request_client_receive(a, &a->connections[0]);
		return;
	}
	n = epoll_wait(a->epoll, events, EVENTS, 0);
	for (int i = 0; i < n; i++)
		request_client_receive(a, events[i].data.ptr);
}

/* Sleeps until an answer arrives or shortly before `until`, unless an answer is expected soon. */
static void sleep_until(struct request_client *a, uint64_t until)
{
	const struct clock *clock = &a->r->clock;
	uint64_t now = clock_cycles(), ns;
	struct pollfd ready = {.fd = a->epoll, .events = POLLIN};
	struct timespec pause;

	if (!unanswered(a) && a->pace.unlimited)
		return;
	if (unanswered(a) && now - a->last_sent < clock_ns_to_cycles(clock, PATIENCE_NS))
		return;
	ns = (int64_t)(until - now) > 0 ? clock_cycles_to_ns(clock, until - now) : 0;
	if (ns <= SPIN_NS)
		return;
	ns -= SPIN_NS;
	pause = clock_timespec(ns);
	ppoll(&ready, 1, &pause, NULL);
}

/* Sends the next request on each connection that has its answer. */
static void send_again(struct request_client *a)
{
	for (unsigned i = 0; i < a->r->o->connections; i++) {
		struct request_connection *c = &a->connections[i];

		if (c->head == c->tail && offer(a, c, clock_cycles()))
			a->scheduled++;
	}
}

/* Sends the requests that are due and were intended before `end`. */
static void send_due(struct request_client *a, uint64_t end)
{
	struct pace_due due;

	for (unsigned i = 0; i < AT_ONCE && !a->r->error.call; i++) {
		uint64_t now = clock_cycles();
		bool given_up;

		if ((int64_t)(a->pace.next - end) >= 0 || !pace_due(&a->pace, now, &due))
			return;
		given_up = pace_overdue(&a->pace, now);
		if (!given_up &&
		        !offer(a, &a->connections[a->scheduled % a->r->o->connections], due.intended))
			return;
		a->not_offered += given_up;
		a->scheduled++;
		pace_next(&a->pace);
	}
}

/* Whether requests intended before `end` are still to be sent. */
static bool has_more(const struct request_client *a, uint64_t end)
{
	return !a->pace.unlimited && (int64_t)(a->pace.next - end) < 0;
}

static bool goes_on(const struct request_client *a)
{
	return !a->r->error.call && !control_stopped();
}

void request_client_run(struct request_client *a)
{
	const struct options *o = a->r->o;
	const struct clock *clock = &a->r->clock;
	uint64_t end = a->r->start + clock_ns_to_cycles(clock, o->duration_s * 1e9), last;

	pace_start(&a->pace, a->r->start);
	while (goes_on(a) && (int64_t)(clock_cycles() - end) < 0) {
		if (a->pace.unlimited)
			send_again(a);
		else
			send_due(a, end);
		poll_answers(a);
		sleep_until(a, has_more(a, end) ? a->pace.next : end);
	}
	/* Requests that became due in a stall are still sent, late by all of it. */
	last = end + clock_ns_to_cycles(clock, o->drain_s * 1e9);
	while (goes_on(a) && (int64_t)(clock_cycles() - last) < 0) {
		if (!a->pace.unlimited)
			send_due(a, end);
		poll_answers(a);
		if (!unanswered(a) && !has_more(a, end))
			break;
		/* A request that was not sent has no answer, so a sleep would last to the end. */
		sleep_until(a, has_more(a, end) ? a->pace.next : last);
	}
	/* After a stop, or if the server took no more, requests that were due are missing. */
	while (has_more(a, end) && (int64_t)(clock_cycles() - a->pace.next) >= 0) {
		a->not_offered++;
		a->scheduled++;
		pace_next(&a->pace);
	}
}

void request_client_json(struct request_client *a, struct json *j)
{
	const struct options *o = a->r->o;
	uint64_t ran = clock_ns_to_cycles(&a->r->clock, o->duration_s * 1e9);

	if ((int64_t)(a->last_answer - (a->r->start + ran)) > 0)
		ran = a->last_answer - a->r->start;
	json_string(j, "protocol", PROTOCOL_NAMES[o->protocol]);
	json_u64(j, "connections", o->connections);
	json_u64(j, "duration_ns", clock_cycles_to_ns(&a->r->clock, ran));
	json_u64(j, "scheduled", a->scheduled);
	json_u64(j, "not_offered", a->not_offered);
	json_u64(j, "sent", a->sent);
	json_u64(j, "answered", a->answered);
	json_u64(j, "wrong", a->wrong);
	json_u64(j, "late", a->late);
	json_u64(j, "unanswered", unanswered(a) + a->not_offered);
	json_u64(j, "payload_bytes", a->payload);
	histogram_json(j, "rtt_ns", &a->intended);
	histogram_json(j, "rtt_actual_ns", &a->actual);
	histogram_json(j, "lateness_ns", &a->lateness);
}
