/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rss.h"

#include <string.h>

const uint8_t RSS_KEY[RSS_KEY_BYTES] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25,
        0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
        0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/* Returns the contribution of a byte at that place of the input: for each set bit, the 32 bits of the key
 * from there on. */
static uint32_t byte_hash(uint32_t place, uint8_t byte)
{
	uint64_t window = 0;
	uint32_t hash = 0;

	for (uint32_t i = 0; i < 5; i++)
		window = window << 8 | RSS_KEY[place + i];
	for (uint32_t bit = 0; bit < 8; bit++)
		if (byte & 0x80u >> bit)
			hash ^= (uint32_t)(window >> (8 - bit));
	return hash;
}

uint32_t rss_hash(const uint8_t *input, uint32_t bytes)
{
	uint32_t hash = 0;

	for (uint32_t i = 0; i < bytes && i < RSS_INPUT_MAX; i++)
		hash ^= byte_hash(i, input[i]);
	return hash;
}

void rss_prepare(struct rss *rss, const struct frame_ends *ends, uint32_t queues)
{
	const struct frame_header *h = &ends->header;
	const uint32_t address = h->ipv6 ? 16 : 4, ports = 2 * address;
	const uint32_t l4 = frame_l4_offset(h), addresses = l4 - ports;
	/* Places in the input: source and destination address, then source and destination port. */
	const uint32_t place[RSS_VARYING] = {
	        address - 4, address - 3, address - 2, address - 1, ports, ports + 1};
	uint8_t l2[FRAME_HEADER_MAX], input[RSS_INPUT_MAX];

	*rss = (struct rss){.queues = queues};
	frame_write_headers(l2, ends, frame_packet_min(h));
	memcpy(input, l2 + addresses, ports);
	memcpy(input + ports, l2 + l4, 4);
	for (unsigned i = 0; i < RSS_VARYING; i++) {
		input[place[i]] = 0;
		rss->offset[i] = (uint8_t)(addresses + place[i]); /* in frames, too, ports follow addresses */
		for (unsigned byte = 0; byte < 256; byte++)
			rss->added[i][byte] = byte_hash(place[i], (uint8_t)byte);
	}
	rss->constant = rss_hash(input, ports + 4);
}
