/* SPDX-License-Identifier: BSD-3-Clause */
#include "request/codec.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const PROTOCOL_NAMES[PROTOCOLS] = {"udp", "tcp", "resp", "memcached", "http"};

/* A line without its CRLF. The text is not terminated. */
struct line {
	const char *text;
	size_t length;
};

/* Reads the line at `at` and advances past its CRLF. PART if it is incomplete, BAD if it cannot become a
 * line. */
static enum answer_kind next_line(const uint8_t *data, size_t n, size_t *at, struct line *line)
{
	size_t left = n - *at < CODEC_HEAD_MAX ? n - *at : CODEC_HEAD_MAX;
	const uint8_t *begin = data + *at, *end = left ? memchr(begin, '\n', left) : NULL;

	if (!end)
		return left < CODEC_HEAD_MAX ? ANSWER_PART : ANSWER_BAD;
	if (end == begin || end[-1] != '\r')
		return ANSWER_BAD;
	*line = (struct line){(const char *)begin, (size_t)(end - begin) - 1};
	*at += line->length + 2;
	return ANSWER_WHOLE;
}

static bool begins(const struct line *line, const char *with)
{
	size_t length = strlen(with);

	return line->length >= length && memcmp(line->text, with, length) == 0;
}

/* Parses digits as the length of a body. */
static bool parse_length(const char *text, size_t n, size_t *length)
{
	size_t value = 0;

	if (!n || n > 9)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (size_t)(text[i] - '0');
	}
	*length = value;
	return value <= CODEC_BODY_MAX;
}

/* Takes a body of that length at `at`, which `behind` has to follow. */
static enum answer_kind take_body(
        const uint8_t *data, size_t n, size_t at, size_t length, const char *behind, struct answer *a)
{
	size_t more = strlen(behind), all = at + length + more;
	size_t there = n > at + length ? n - at - length : 0;

	if (there && memcmp(data + at + length, behind, there < more ? there : more) != 0)
		return ANSWER_BAD;
	if (n < all)
		return ANSWER_PART;
	*a = (struct answer){.length = all, .body = data + at, .body_length = length};
	return ANSWER_WHOLE;
}

/* $LENGTH, CRLF, the value, CRLF; $-1 for a miss; a line for an error, a status or a number. */
static enum answer_kind parse_resp(const uint8_t *data, size_t n, struct answer *a)
{
	struct line line;
	size_t at = 0, length;
	enum answer_kind kind;

	if (!n)
		return ANSWER_PART;
	if (!memchr("$-+:", data[0], 4))
		return ANSWER_BAD;
	kind = next_line(data, n, &at, &line);
	if (kind != ANSWER_WHOLE)
		return kind;
	*a = (struct answer){.length = at};
	if (line.text[0] != '$' || (line.length == 3 && begins(&line, "$-1")))
		return ANSWER_WHOLE;
	if (!parse_length(line.text + 1, line.length - 1, &length))
		return ANSWER_BAD;
	return take_body(data, n, at, length, "\r\n", a);
}

/* VALUE KEY FLAGS LENGTH, CRLF, the value, CRLF, END, CRLF; END alone for a miss; a line for an error. */
static enum answer_kind parse_memcached(const uint8_t *data, size_t n, struct answer *a)
{
	static const char *const ALONE[] = {"END", "ERROR", "SERVER_ERROR ", "CLIENT_ERROR "};
	struct line line;
	size_t at = 0, length, digits = 0;
	enum answer_kind kind;

	if (n && !memchr("VESC", data[0], 4))
		return ANSWER_BAD;
	kind = next_line(data, n, &at, &line);
	if (kind != ANSWER_WHOLE)
		return kind;
	*a = (struct answer){.length = at};
	for (size_t i = 0; i < sizeof(ALONE) / sizeof(ALONE[0]); i++)
		if (begins(&line, ALONE[i]) && (i > 1 || line.length == strlen(ALONE[i])))
			return ANSWER_WHOLE;
	if (!begins(&line, "VALUE "))
		return ANSWER_BAD;
	while (digits < line.length && line.text[line.length - 1 - digits] != ' ')
		digits++;
	if (!parse_length(line.text + line.length - digits, digits, &length))
		return ANSWER_BAD;
	return take_body(data, n, at, length, "\r\nEND\r\n", a);
}

/* Returns the value of a header without surrounding blanks. */
static struct line header_value(const struct line *line, size_t name)
{
	struct line value = {line->text + name, line->length - name};

	while (value.length && (*value.text == ' ' || *value.text == '\t')) {
		value.text++;
		value.length--;
	}
	while (value.length && (value.text[value.length - 1] == ' ' || value.text[value.length - 1] == '\t'))
		value.length--;
	return value;
}

/* Reads headers up to the empty line, and the body's length from Content-Length. BAD without it: chunked
 * bodies and those up to the end of the connection are not supported. */
static enum answer_kind parse_http_headers(const uint8_t *data, size_t n, size_t *at, size_t *length)
{
	static const char LENGTH[] = "content-length:";
	const size_t name = sizeof(LENGTH) - 1;
	bool has_length = false;

	for (;;) {
		struct line line, value;
		enum answer_kind kind;

		if (*at > CODEC_HEAD_MAX)
			return ANSWER_BAD;
		kind = next_line(data, n, at, &line);
		if (kind != ANSWER_WHOLE)
			return kind;
		if (!line.length)
			return has_length ? ANSWER_WHOLE : ANSWER_BAD;
		if (line.length < name || strncasecmp(line.text, LENGTH, name) != 0)
			continue;
		value = header_value(&line, name);
		if (has_length || !parse_length(value.text, value.length, length))
			return ANSWER_BAD;
		has_length = true;
	}
}

/* A status line, headers, an empty line, the body. */
static enum answer_kind parse_http(const uint8_t *data, size_t n, struct answer *a)
{
	static const char VERSION[] = "HTTP/1.1 ";
	const size_t known = sizeof(VERSION) - 1;
	struct line line;
	size_t at = 0, length = 0;
	bool good;
	enum answer_kind kind;

	if (memcmp(data, VERSION, n < known ? n : known) != 0)
		return ANSWER_BAD;
	kind = next_line(data, n, &at, &line);
	if (kind != ANSWER_WHOLE)
		return kind;
	if (line.length < known + 3)
		return ANSWER_BAD;
	good = memcmp(line.text + known, "200", 3) == 0;
	kind = parse_http_headers(data, n, &at, &length);
	if (kind != ANSWER_WHOLE)
		return kind;
	kind = take_body(data, n, at, length, "", a);
	if (kind == ANSWER_WHOLE && !good)
		a->body = NULL;
	return kind;
}

enum answer_kind answer_parse(
        enum protocol protocol, const uint8_t *data, size_t n, size_t message, struct answer *a)
{
	*a = (struct answer){0};
	switch (protocol) {
	case PROTOCOL_RESP:
		return parse_resp(data, n, a);
	case PROTOCOL_MEMCACHED:
		return parse_memcached(data, n, a);
	case PROTOCOL_HTTP:
		return parse_http(data, n, a);
	case PROTOCOL_UDP:
		if (n != message)
			return ANSWER_BAD;
		/* fallthrough */
	default:
		return take_body(data, n, 0, message, "", a);
	}
}

uint8_t *request_new(enum protocol protocol, const char *key, size_t message, size_t *length)
{
	char *text = NULL;
	uint8_t *echo;
	int n;

	switch (protocol) {
	case PROTOCOL_RESP:
		n = asprintf(&text, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(key), key);
		break;
	case PROTOCOL_MEMCACHED:
		n = asprintf(&text, "get %s\r\n", key);
		break;
	case PROTOCOL_HTTP:
		n = asprintf(&text, "GET /%s HTTP/1.1\r\nHost: icbench\r\n\r\n", key);
		break;
	default:
		echo = malloc(message);
		for (size_t i = 0; echo && i < message; i++)
			echo[i] = (uint8_t)i;
		*length = message;
		return echo;
	}
	*length = n < 0 ? 0 : (size_t)n;
	return n < 0 ? NULL : (uint8_t *)text;
}

void message_number(uint8_t *message, uint64_t sequence)
{
	uint64_t be = htobe64(sequence);

	memcpy(message, &be, sizeof(be));
}

uint64_t message_sequence(const uint8_t *message)
{
	uint64_t be;

	memcpy(&be, message, sizeof(be));
	return be64toh(be);
}
