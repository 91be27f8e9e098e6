/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: arbitrary bytes as the answer of a server in each protocol. The end of an answer must not depend
 * on how its bytes were split.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "request/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses the first n bytes in a buffer of exactly that size, so that a sanitizer detects reads past its
 * end. */
static enum answer_kind parse(enum protocol protocol, const uint8_t *data, size_t n, struct answer *a)
{
	uint8_t *copy = malloc(n ? n : 1);
	enum answer_kind kind;

	assert(copy);
	memcpy(copy, data, n);
	kind = answer_parse(protocol, copy, n, 16, a);
	if (kind == ANSWER_WHOLE) {
		assert(a->length && a->length <= n);
		assert(!a->body || (a->body >= copy && a->body + a->body_length <= copy + a->length));
	}
	free(copy);
	return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum protocol protocol;
	struct answer all, part;

	if (!size)
		return 0;
	protocol = (enum protocol)(data[0] % PROTOCOLS);
	data++;
	size--;
	if (parse(protocol, data, size, &all) != ANSWER_WHOLE)
		return 0;
	assert(parse(protocol, data, all.length, &part) == ANSWER_WHOLE);
	assert(part.length == all.length && part.body_length == all.body_length && !part.body == !all.body);
	if (protocol != PROTOCOL_UDP)
		assert(parse(protocol, data, all.length - 1, &part) == ANSWER_PART);
	return 0;
}
