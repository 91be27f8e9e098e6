/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and their answers, as bytes: our own echo, RESP, memcached's text protocol, HTTP/1.1. Pure. */
#ifndef ICBENCH_CODEC_H
#define ICBENCH_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a request and its answer are. The first two are echoes: the answer is the request. */
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

/* An echo's message has a number and something to compare; a datagram fits into IPv4. */
#define MESSAGE_MIN 16u
#define DATAGRAM_MAX 65507u

/* Bytes of a sequence number, big endian, in front of each message of an echo. */
#define CODEC_SEQUENCE_BYTES 8u
/* The greatest body of an answer, and the greatest head before it. */
#define CODEC_BODY_MAX (UINT32_C(1) << 24)
#define CODEC_HEAD_MAX 16384u

enum answer_kind {
	ANSWER_PART,  /* more bytes have to come */
	ANSWER_WHOLE, /* one answer; body is NULL for one without a value: a miss, an error, not 200 */
	ANSWER_BAD,   /* nothing that the protocol has: where the next answer begins is not known */
};

struct answer {
	size_t length; /* of all its bytes, head and body */
	const uint8_t *body;
	size_t body_length;
};

/* The first answer in n bytes of a stream, or in a datagram. message: bytes of an echo's. */
enum answer_kind answer_parse(
        enum protocol protocol, const uint8_t *data, size_t n, size_t message, struct answer *a);

/* The request for a key, or for an echo a message of that many bytes, which the caller frees; NULL if memory
 * is short. */
uint8_t *request_new(enum protocol protocol, const char *key, size_t message, size_t *length);

/* The sequence number of an echo's message of at least CODEC_SEQUENCE_BYTES. */
void message_number(uint8_t *message, uint64_t sequence);
uint64_t message_sequence(const uint8_t *message);

#endif
