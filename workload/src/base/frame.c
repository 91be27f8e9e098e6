/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/frame.h"

#define OFFSET_IP FRAME_ETH_BYTES
#define OFFSET_UDP (FRAME_ETH_BYTES + FRAME_IP_BYTES)
#define PROTOCOL_UDP 17

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* One's complement sum of RFC 1071 over the bytes in memory order, not yet folded. The sum does not care
 * about the byte order as long as it is one and the same, so swapping is left to the end. */
static uint64_t sum_words(const uint8_t *p, uint32_t len, uint64_t sum)
{
	uint32_t words = len / 4;
	uint32_t rest = 0;

	for (uint32_t i = 0; i < words; i++) {
		uint32_t word;

		memcpy(&word, p + 4 * i, sizeof(word));
		sum += word;
	}
	memcpy(&rest, p + 4 * words, len % 4);
	return sum + rest;
}

/* The sum as a number of 16 bits. */
static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return be16toh((uint16_t)sum);
}

/* Sum over the pseudo header and the UDP datagram, checksum field included. */
static uint16_t udp_sum(const uint8_t *l2)
{
	const uint8_t *udp = l2 + OFFSET_UDP;
	uint16_t len = get16(udp + 4);
	uint64_t sum = sum_words(l2 + OFFSET_IP + 12, 8, 0);

	return fold(sum_words(udp, len, sum + htobe16(PROTOCOL_UDP) + htobe16(len)));
}

void frame_write_headers(uint8_t *l2, const struct frame_ends *ends, uint32_t packet_size)
{
	uint8_t *ip = l2 + OFFSET_IP, *udp = l2 + OFFSET_UDP;
	uint16_t ip_len = (uint16_t)(packet_size - FRAME_FCS_BYTES - FRAME_ETH_BYTES);

	memset(l2, 0, FRAME_HEADER_BYTES);
	memcpy(l2, ends->remote_mac, 6);
	memcpy(l2 + 6, ends->local_mac, 6);
	put16(l2 + 12, 0x0800);
	ip[0] = 0x45;
	put16(ip + 2, ip_len);
	ip[8] = 64;
	ip[9] = PROTOCOL_UDP;
	memcpy(ip + 12, &ends->local_ip, 4);
	memcpy(ip + 16, &ends->remote_ip, 4);
	put16(ip + 10, (uint16_t)~fold(sum_words(ip, FRAME_IP_BYTES, 0)));
	put16(udp, ends->udp_port);
	put16(udp + 2, ends->udp_port);
	put16(udp + 4, (uint16_t)(ip_len - FRAME_IP_BYTES));
}

/* The checksum after a word that it covers has become another (RFC 1624, equation 3). */
static uint16_t amended(uint16_t checksum, uint16_t before, uint16_t after)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~before + after;

	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

void frame_set_size(uint8_t *l2, uint32_t packet_size)
{
	uint8_t *ip = l2 + OFFSET_IP, *udp = l2 + OFFSET_UDP;
	uint16_t ip_len = (uint16_t)(packet_size - FRAME_FCS_BYTES - FRAME_ETH_BYTES), before = get16(ip + 2);

	if (ip_len == before)
		return;
	put16(ip + 2, ip_len);
	put16(ip + 10, amended(get16(ip + 10), before, ip_len));
	put16(udp + 4, (uint16_t)(ip_len - FRAME_IP_BYTES));
}

void frame_set_source_ip(uint8_t *l2, struct in_addr source)
{
	uint8_t *ip = l2 + OFFSET_IP, wanted[4];
	uint16_t sum = get16(ip + 10);

	memcpy(wanted, &source, sizeof(wanted));
	if (memcmp(ip + 12, wanted, sizeof(wanted)) == 0)
		return;
	sum = amended(sum, get16(ip + 12), get16(wanted));
	put16(ip + 10, amended(sum, get16(ip + 14), get16(wanted + 2)));
	memcpy(ip + 12, wanted, sizeof(wanted));
}

void frame_set_source_port(uint8_t *l2, uint16_t port)
{
	put16(l2 + OFFSET_UDP, port);
}

void frame_set_source_mac(uint8_t *l2, const uint8_t mac[6])
{
	memcpy(l2 + 6, mac, 6);
}

uint8_t *frame_parse(uint8_t *l2, uint32_t bytes, uint16_t udp_port, uint16_t *payload_len)
{
	const uint8_t *ip = l2 + OFFSET_IP, *udp = l2 + OFFSET_UDP;
	uint16_t ip_len, udp_len;

	*payload_len = 0;
	if (bytes < FRAME_HEADER_BYTES || get16(l2 + 12) != 0x0800 || ip[0] != 0x45 || ip[9] != PROTOCOL_UDP)
		return NULL;
	if (get16(ip + 6) & 0x3fff) /* more fragments, or an offset */
		return NULL;
	ip_len = get16(ip + 2);
	udp_len = get16(udp + 4);
	if (ip_len > bytes - FRAME_ETH_BYTES || udp_len < FRAME_UDP_BYTES ||
	        ip_len != FRAME_IP_BYTES + udp_len)
		return NULL;
	if (get16(udp + 2) != udp_port)
		return NULL;
	*payload_len = (uint16_t)(udp_len - FRAME_UDP_BYTES);
	return l2 + FRAME_HEADER_BYTES;
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[6];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

void frame_reflect(uint8_t *l2)
{
	swap_bytes(l2, l2 + 6, 6);
	swap_bytes(l2 + OFFSET_IP + 12, l2 + OFFSET_IP + 16, 4);
	swap_bytes(l2 + OFFSET_UDP, l2 + OFFSET_UDP + 2, 2);
}

void frame_seal(uint8_t *l2)
{
	uint8_t *field = l2 + OFFSET_UDP + 6;
	uint16_t sum;

	put16(field, 0);
	sum = (uint16_t)~udp_sum(l2);
	put16(field, sum ? sum : 0xffff); /* RFC 768: 0 means none */
}

bool frame_checksums_ok(const uint8_t *l2)
{
	if (fold(sum_words(l2 + OFFSET_IP, FRAME_IP_BYTES, 0)) != 0xffff)
		return false;
	return get16(l2 + OFFSET_UDP + 6) == 0 || udp_sum(l2) == 0xffff;
}

/* The padding's words are a Weyl sequence that starts elsewhere for each frame: cheap to make, and
 * neighbouring frames differ in every word. */
#define PATTERN_FRAME UINT64_C(0x9e3779b97f4a7c15)
#define PATTERN_WORD UINT64_C(0xd1342543de82ef95)

static uint64_t pattern(uint64_t sequence, uint32_t word)
{
	return (sequence + 1) * PATTERN_FRAME + word * PATTERN_WORD;
}

void frame_fill(uint8_t *payload, uint32_t payload_len, uint64_t sequence)
{
	uint8_t *padding = payload + FRAME_STAMP_BYTES;
	uint32_t bytes = payload_len > FRAME_STAMP_BYTES ? payload_len - FRAME_STAMP_BYTES : 0;
	uint32_t words = bytes / 8;
	uint64_t tail = htole64(pattern(sequence, words));

	for (uint32_t i = 0; i < words; i++) {
		uint64_t v = htole64(pattern(sequence, i));

		memcpy(padding + 8 * i, &v, 8);
	}
	memcpy(padding + 8 * words, &tail, bytes % 8);
}

bool frame_filled(const uint8_t *payload, uint32_t payload_len, uint64_t sequence)
{
	const uint8_t *padding = payload + FRAME_STAMP_BYTES;
	uint32_t bytes = payload_len > FRAME_STAMP_BYTES ? payload_len - FRAME_STAMP_BYTES : 0;
	uint32_t words = bytes / 8;
	uint64_t tail = htole64(pattern(sequence, words)), differing = 0;

	for (uint32_t i = 0; i < words; i++) {
		uint64_t v;

		memcpy(&v, padding + 8 * i, 8);
		differing |= le64toh(v) ^ pattern(sequence, i);
	}
	return !differing && memcmp(padding + 8 * words, &tail, bytes % 8) == 0;
}
