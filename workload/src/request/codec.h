/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and answers as bytes: our own echo, RESP, memcached's text protocol, HTTP/1.1. */
#ifndef ICBENCH_CODEC_H
#define ICBENCH_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The protocol of requests and answers. The first two are echoes: the answer is the request. */
enum protocol {
	PROTOCOL_UDP,
	PROTOCOL_TCP,
	PROTOCOL_RESP,
	PROTOCOL_MEMCACHED,
	PROTOCOL_HTTP,
	PROTOCOLS, /* their number */
};

extern const char *const PROTOCOL_NAMES[PROTOCOLS];

static inline bool protocol_echoes(enum protocol protocol)
{
	return protocol <= PROTOCOL_TCP;
}

/* Bytes of an echo's message, which has a number and something to compare, and of a datagram over IPv4. */
#define MESSAGE_MIN 16u
#define DATAGRAM_MAX 65507u

/* Bytes of the big-endian sequence number at the beginning of an echo's message. */
#define CODEC_SEQUENCE_BYTES 8u
/* The largest body of an answer, and the largest head before it. */
#define CODEC_BODY_MAX (UINT32_C(1) << 24)
#define CODEC_HEAD_MAX 16384u

enum answer_kind {
	ANSWER_PART,  /* incomplete */
	ANSWER_WHOLE, /* one answer; body is NULL if it has no value: a miss, an error, not 200 */
	ANSWER_BAD,   /* no answer of the protocol, so the start of the next one is unknown */
};

struct answer {
	size_t length; /* head and body */
	const uint8_t *body;
	size_t body_length;
};

/* Parses the first answer in n bytes of a stream or in a datagram. `message` is the length of an echo. */
enum answer_kind answer_parse(
        enum protocol protocol, const uint8_t *data, size_t n, size_t message, struct answer *a);

/* Returns the request for a key, or an echo's message of that length. The caller frees it. NULL if memory is
 * short. */
uint8_t *request_new(enum protocol protocol, const char *key, size_t message, size_t *length);

/* Write and read the sequence number of an echo's message of at least CODEC_SEQUENCE_BYTES. */
void message_number(uint8_t *message, uint64_t sequence);
uint64_t message_sequence(const uint8_t *message);

#endif
