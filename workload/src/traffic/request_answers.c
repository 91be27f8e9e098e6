/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/request_answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/stream.h"

/* Datagrams that are received before the next look at what is due. */
#define AT_ONCE 64u

/* Returns the request of an answer; NULL if none waits for it. Streams keep their order. */
static struct pending_request *request_of(
        struct request_client *a, struct request_connection *c, const struct answer *answer)
{
	uint64_t number = request_is_udp(a) ? message_sequence(answer->body) : c->head;
	struct pending_request *request = &c->waiting[number % REQUEST_DEPTH];

	if (number < c->head || number >= c->tail || !request->sent)
		return NULL;
	return request;
}

/* Whether the answer has the right value: an echo returns the bytes of the request; other answers have the
 * requested length and the bytes of the first answer. */
static bool is_right(
        struct request_client *a, const struct request_connection *c, const struct answer *answer)
{
	const size_t length = a->r->o->message, skip = CODEC_SEQUENCE_BYTES;

	if (!answer->body || answer->body_length != length)
		return false;
	if (request_is_echo(a))
		return (request_is_udp(a) || message_sequence(answer->body) == c->head) &&
		       memcmp(answer->body + skip, c->out + skip, length - skip) == 0;
	if (!a->first_known)
		memcpy(a->first_body, answer->body, length);
	a->first_known = true;
	return memcmp(a->first_body, answer->body, length) == 0;
}

static void take(
        struct request_client *a, struct request_connection *c, const struct answer *answer, uint64_t now)
{
	struct pending_request *request = request_of(a, c, answer);

	if (!request) {
		a->late += request_is_udp(a);
		a->wrong += !request_is_udp(a);
		return;
	}
	if (is_right(a, c, answer)) {
		const struct clock *clock = &a->r->clock;

		histogram_record(&a->intended, clock_cycles_to_ns(clock, now - request->intended), 1);
		histogram_record(&a->actual, clock_cycles_to_ns(clock, now - request->sent), 1);
		a->answered++;
		a->payload += answer->body_length;
	} else {
		a->wrong++;
	}
	a->last_answer = now;
	request->sent = 0;
	while (c->head < c->tail && !c->waiting[c->head % REQUEST_DEPTH].sent)
		c->head++;
}

/* Reports bytes that are no answer, and ends the run. */
static void refuse(struct request_client *a, const uint8_t *data, size_t n)
{
	char text[41];
	size_t length = n < sizeof(text) - 1 ? n : sizeof(text) - 1;

	for (size_t i = 0; i < length; i++)
		text[i] = data[i] >= ' ' && data[i] < 127 ? (char)data[i] : '.';
	text[length] = '\0';
	fprintf(stderr, "icbench-workload %s: the server's answer is not of the protocol %s: '%s'\n",
	        a->r->o->app_name, PROTOCOL_NAMES[a->r->o->protocol], text);
	run_failed(a->r, "answer", EPROTO);
}

/* Extracts complete answers from the received bytes of a connection. */
static void take_all(struct request_client *a, struct request_connection *c, uint64_t now)
{
	const struct options *o = a->r->o;
	struct answer answer;
	size_t at = 0;

	while (at < c->in_used) {
		enum answer_kind kind =
		        answer_parse(o->protocol, c->in + at, c->in_used - at, o->message, &answer);

		if (kind == ANSWER_BAD || (kind == ANSWER_PART && !at && c->in_used == a->in_size)) {
			refuse(a, c->in + at, c->in_used - at);
			return;
		}
		if (kind == ANSWER_PART)
			break;
		take(a, c, &answer, now);
		at += answer.length;
	}
	c->in_used -= at;
	memmove(c->in, c->in + at, c->in_used);
}

void request_client_receive(struct request_client *a, struct request_connection *c)
{
	for (unsigned i = 0; i < AT_ONCE && !a->r->error.call; i++) {
		long n = stream_receive(c->fd, c->in + c->in_used, a->in_size - c->in_used);

		if (n < 0)
			run_failed(a->r, "receive", errno);
		if (n <= 0)
			return;
		c->in_used += (size_t)n;
		take_all(a, c, clock_cycles());
		if (!request_is_udp(a)) /* the rest is received next time */
			return;
	}
}
