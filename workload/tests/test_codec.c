/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of each protocol, and answers: whole, split, without a value, and invalid. */
#include "request/codec.h"

#include "check.h"

#define MESSAGE 16u

static enum answer_kind parse(enum protocol protocol, const char *text, struct answer *a)
{
	return answer_parse(protocol, (const uint8_t *)text, strlen(text), MESSAGE, a);
}

/* Fed byte by byte, and with the next answer after it. */
static void check_whole(enum protocol protocol, const char *text, const char *body)
{
	struct answer a;
	char twice[512];
	size_t length = strlen(text);

	for (size_t n = 0; n < length; n++)
		CHECK(answer_parse(protocol, (const uint8_t *)text, n, MESSAGE, &a) == ANSWER_PART);
	snprintf(twice, sizeof(twice), "%s%s", text, text);
	CHECK(parse(protocol, twice, &a) == ANSWER_WHOLE);
	CHECK_EQUAL(a.length, length);
	CHECK((a.body == NULL) == (body == NULL));
	if (body) {
		CHECK_EQUAL(a.body_length, strlen(body));
		CHECK(memcmp(a.body, body, strlen(body)) == 0);
	}
}

static void check_bad(enum protocol protocol, const char *text)
{
	struct answer a;

	if (parse(protocol, text, &a) != ANSWER_BAD) {
		fprintf(stderr, "taken for an answer: %s\n", text);
		exit(1);
	}
}

static void resp(void)
{
	check_whole(PROTOCOL_RESP, "$5\r\nhello\r\n", "hello");
	check_whole(PROTOCOL_RESP, "$0\r\n\r\n", "");
	check_whole(PROTOCOL_RESP, "$-1\r\n", NULL);
	check_whole(PROTOCOL_RESP, "-ERR no such command\r\n", NULL);
	check_whole(PROTOCOL_RESP, "+OK\r\n", NULL);
	check_bad(PROTOCOL_RESP, "HTTP/1.1 200 OK\r\n");
	check_bad(PROTOCOL_RESP, "$5\r\nhelloXX");
	check_bad(PROTOCOL_RESP, "$-2\r\n");
	check_bad(PROTOCOL_RESP, "$99999999999\r\n");
	check_bad(PROTOCOL_RESP, "$5\nhello\n");
	check_bad(PROTOCOL_RESP, "$\r\n");
}

static void memcached(void)
{
	check_whole(PROTOCOL_MEMCACHED, "VALUE icbench 0 5\r\nhello\r\nEND\r\n", "hello");
	check_whole(PROTOCOL_MEMCACHED, "END\r\n", NULL);
	check_whole(PROTOCOL_MEMCACHED, "ERROR\r\n", NULL);
	check_whole(PROTOCOL_MEMCACHED, "SERVER_ERROR out of memory\r\n", NULL);
	check_bad(PROTOCOL_MEMCACHED, "VALUE icbench 0 5\r\nhello\r\nVALUE");
	check_bad(PROTOCOL_MEMCACHED, "VALUE icbench 0 x\r\n");
	check_bad(PROTOCOL_MEMCACHED, "VALUEicbench05\r\n");
	check_bad(PROTOCOL_MEMCACHED, "ENDE\r\n");
	check_bad(PROTOCOL_MEMCACHED, "+OK\r\n");
}

static void http(void)
{
	check_whole(
	        PROTOCOL_HTTP, "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  5 \r\n\r\nhello", "hello");
	check_whole(PROTOCOL_HTTP, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", NULL);
	check_whole(PROTOCOL_HTTP, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "");
	check_bad(PROTOCOL_HTTP, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	check_bad(PROTOCOL_HTTP, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n");
	check_bad(PROTOCOL_HTTP, "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n");
	check_bad(PROTOCOL_HTTP, "HTTP/1.0 200 OK\r\n");
	check_bad(PROTOCOL_HTTP, "HTTP/1.1 \r\n");
	check_bad(PROTOCOL_HTTP, "SSH-2.0-OpenSSH\r\n");
}

/* An endless head, which no server sends. */
static void endless(void)
{
	static char text[2 * CODEC_HEAD_MAX];
	struct answer a;

	memset(text, 'x', sizeof(text) - 1);
	text[0] = '+';
	check_bad(PROTOCOL_RESP, text);
	memcpy(text, "HTTP/1.1 200 OK\r\n", 17);
	for (size_t i = 17; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "x\r\n", 3);
	CHECK(parse(PROTOCOL_HTTP, text, &a) == ANSWER_BAD);
}

static void echo(void)
{
	size_t length;
	uint8_t message[MESSAGE + 1] = {0}, *request = request_new(PROTOCOL_TCP, "", MESSAGE, &length);
	struct answer a;

	CHECK(request);
	CHECK_EQUAL(length, MESSAGE);
	memcpy(message, request, MESSAGE);
	free(request);
	message_number(message, UINT64_C(0x1122334455667788));
	CHECK(message[0] == 0x11 && message[7] == 0x88 && message[8] == 8);
	CHECK(answer_parse(PROTOCOL_TCP, message, MESSAGE - 1, MESSAGE, &a) == ANSWER_PART);
	CHECK(answer_parse(PROTOCOL_UDP, message, MESSAGE - 1, MESSAGE, &a) == ANSWER_BAD);
	CHECK(answer_parse(PROTOCOL_UDP, message, MESSAGE, MESSAGE, &a) == ANSWER_WHOLE);
	CHECK(answer_parse(PROTOCOL_TCP, message, MESSAGE + 1, MESSAGE, &a) == ANSWER_WHOLE);
	CHECK_EQUAL(a.length, MESSAGE);
	CHECK_EQUAL(message_sequence(a.body), UINT64_C(0x1122334455667788));
}

static void check_request(enum protocol protocol, const char *expected)
{
	size_t length;
	uint8_t *text = request_new(protocol, "key", 0, &length);

	CHECK(text);
	CHECK_EQUAL(length, strlen(expected));
	CHECK(memcmp(text, expected, length) == 0);
	free(text);
}

int main(void)
{
	resp();
	memcached();
	http();
	endless();
	echo();
	check_request(PROTOCOL_RESP, "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
	check_request(PROTOCOL_MEMCACHED, "get key\r\n");
	check_request(PROTOCOL_HTTP, "GET /key HTTP/1.1\r\nHost: icbench\r\n\r\n");
	return 0;
}
