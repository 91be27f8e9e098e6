/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/frame.h"

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86ddu
#define ETHERTYPE_TAG 0x8100u
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define HOPS 64
/* Bytes of both addresses of an Ethernet header. */
#define MACS_BYTES 12u

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* The one's complement sum of RFC 1071 over the bytes in memory order, not folded. The sum is independent of
 * byte order, so bytes are swapped once, at the end. */
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

/* Folds a sum to 16 bits. */
static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return be16toh((uint16_t)sum);
}

static uint8_t protocol(const struct frame_header *h)
{
	return h->tcp ? PROTOCOL_TCP : PROTOCOL_UDP;
}

/* Returns the bytes of the UDP or TCP header and its payload, as the IP header states them. */
static uint16_t l4_bytes(const uint8_t *ip, const struct frame_header *h)
{
	return h->ipv6 ? get16(ip + 4) : (uint16_t)(get16(ip + 2) - FRAME_IP_BYTES);
}

/* Returns the sum over the pseudo header and the first `summed` bytes after IP, including the checksum
 * field. */
static uint16_t l4_sum(const uint8_t *l2, const struct frame_header *h, uint32_t summed)
{
	const uint8_t *ip = l2 + frame_ip_offset(h);
	uint64_t sum = h->ipv6 ? sum_words(ip + 8, 32, 0) : sum_words(ip + 12, 8, 0);

	sum += htobe16(protocol(h)) + htobe16(l4_bytes(ip, h));
	return fold(sum_words(l2 + frame_l4_offset(h), summed, sum));
}

void frame_ipv6(uint8_t ipv6[16], struct in_addr ip)
{
	static const uint8_t PREFIX[12] = {0xfd, 0x69, 0x63, 0x62, 0x65, 0x6e, 0x63, 0x68};

	memcpy(ipv6, PREFIX, sizeof(PREFIX));
	memcpy(ipv6 + sizeof(PREFIX), &ip, 4);
}

static void write_ip(uint8_t *ip, const struct frame_ends *ends, uint32_t l4_len)
{
	const struct frame_header *h = &ends->header;

	if (h->ipv6) {
		ip[0] = 0x60;
		put16(ip + 4, (uint16_t)l4_len);
		ip[6] = protocol(h);
		ip[7] = HOPS;
		frame_ipv6(ip + 8, ends->local_ip);
		frame_ipv6(ip + 24, ends->remote_ip);
		return;
	}
	ip[0] = 0x45;
	put16(ip + 2, (uint16_t)(FRAME_IP_BYTES + l4_len));
	ip[8] = HOPS;
	ip[9] = protocol(h);
	memcpy(ip + 12, &ends->local_ip, 4);
	memcpy(ip + 16, &ends->remote_ip, 4);
	put16(ip + 10, (uint16_t)~fold(sum_words(ip, FRAME_IP_BYTES, 0)));
}

void frame_write_headers(uint8_t *l2, const struct frame_ends *ends, uint32_t packet_size)
{
	const struct frame_header *h = &ends->header;
	uint8_t *ip = l2 + frame_ip_offset(h), *l4 = l2 + frame_l4_offset(h);
	uint32_t l4_len = packet_size - FRAME_FCS_BYTES - frame_l4_offset(h);

	memset(l2, 0, frame_header_bytes(h));
	memcpy(l2, ends->remote_mac, 6);
	memcpy(l2 + 6, ends->local_mac, 6);
	if (h->vlan) {
		put16(l2 + 12, ETHERTYPE_TAG);
		put16(l2 + 14, h->vlan);
	}
	put16(ip - 2, h->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	write_ip(ip, ends, l4_len);
	put16(l4, ends->udp_port);
	put16(l4 + 2, ends->udp_port);
	if (!h->tcp) {
		put16(l4 + 4, (uint16_t)l4_len);
		return;
	}
	l4[7] = 1;     /* sequence number */
	l4[11] = 1;    /* acknowledgement number */
	l4[12] = 0x50; /* header length: five words */
	l4[13] = 0x10; /* ACK */
	put16(l4 + 14, UINT16_MAX);
}

/* Returns the checksum after one word that it covers has changed (RFC 1624, equation 3). */
static uint16_t amended(uint16_t checksum, uint16_t before, uint16_t after)
{
	uint32_t sum = (uint16_t)~checksum + (uint32_t)(uint16_t)~before + after;

	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

void frame_set_size(uint8_t *l2, const struct frame_header *h, uint32_t packet_size)
{
	uint8_t *ip = l2 + frame_ip_offset(h), *l4 = l2 + frame_l4_offset(h);
	uint16_t l4_len = (uint16_t)(packet_size - FRAME_FCS_BYTES - frame_l4_offset(h));
	uint16_t ip_len = (uint16_t)(l4_len + FRAME_IP_BYTES), before = get16(ip + 2);

	if (h->ipv6) {
		put16(ip + 4, l4_len);
	} else if (ip_len == before) {
		return;
	} else {
		put16(ip + 2, ip_len);
		put16(ip + 10, amended(get16(ip + 10), before, ip_len));
	}
	if (!h->tcp)
		put16(l4 + 4, l4_len);
}

/* Sets an address of an IPv4 header, at an offset, and amends the checksum. */
static void set_ipv4(uint8_t *ip, uint32_t at, struct in_addr address)
{
	uint8_t wanted[4];
	uint16_t sum = get16(ip + 10);

	memcpy(wanted, &address, sizeof(wanted));
	if (memcmp(ip + at, wanted, sizeof(wanted)) == 0)
		return;
	sum = amended(sum, get16(ip + at), get16(wanted));
	put16(ip + 10, amended(sum, get16(ip + at + 2), get16(wanted + 2)));
	memcpy(ip + at, wanted, sizeof(wanted));
}

void frame_set_source_ip(uint8_t *l2, const struct frame_header *h, struct in_addr source)
{
	uint8_t *ip = l2 + frame_ip_offset(h);

	if (h->ipv6)
		frame_ipv6(ip + 8, source);
	else
		set_ipv4(ip, 12, source);
}

void frame_set_target_ip(uint8_t *l2, const struct frame_header *h, struct in_addr target)
{
	uint8_t *ip = l2 + frame_ip_offset(h);

	if (h->ipv6)
		frame_ipv6(ip + 24, target);
	else
		set_ipv4(ip, 16, target);
}

void frame_set_route(uint8_t *l2, const struct frame_header *h, uint32_t route)
{
	uint8_t *target = l2 + frame_ip_offset(h) + 24;

	if (!h->ipv6) {
		frame_set_target_ip(l2, h, frame_route_ip(route));
		return;
	}
	memset(target, 0, 16);
	put16(target, 0xfd0a);
	put16(target + 4, (uint16_t)(route >> 16));
	put16(target + 6, (uint16_t)route);
	target[15] = 1;
}

void frame_set_source_port(uint8_t *l2, const struct frame_header *h, uint16_t port)
{
	put16(l2 + frame_l4_offset(h), port);
}

void frame_set_source_mac(uint8_t *l2, const uint8_t mac[6])
{
	memcpy(l2 + 6, mac, 6);
}

uint8_t *frame_put_tag(uint8_t *l2, uint16_t ethertype, uint16_t control)
{
	memmove(l2 - FRAME_VLAN_BYTES, l2, MACS_BYTES);
	l2 -= FRAME_VLAN_BYTES;
	put16(l2 + MACS_BYTES, ethertype);
	put16(l2 + MACS_BYTES + 2, control);
	return l2;
}

unsigned frame_checks(
        const struct frame_header *h, uint16_t port, struct frame_check checks[FRAME_CHECKS_MAX])
{
	uint8_t ip = (uint8_t)frame_ip_offset(h), l4 = (uint8_t)frame_l4_offset(h);
	unsigned n = 0;

	if (h->vlan) {
		checks[n++] = (struct frame_check){12, 2, 0xffff, ETHERTYPE_TAG};
		checks[n++] = (struct frame_check){14, 2, 0x0fff, h->vlan};
	}
	checks[n++] =
	        (struct frame_check){(uint8_t)(ip - 2), 2, 0xffff, h->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4};
	if (h->ipv6) {
		checks[n++] = (struct frame_check){ip, 1, 0xf0, 0x60};
		checks[n++] = (struct frame_check){(uint8_t)(ip + 6), 1, 0xff, protocol(h)};
	} else {
		checks[n++] = (struct frame_check){ip, 1, 0xff, 0x45};
		/* More fragments, or a fragment offset. */
		checks[n++] = (struct frame_check){(uint8_t)(ip + 6), 2, 0x3fff, 0};
		checks[n++] = (struct frame_check){(uint8_t)(ip + 9), 1, 0xff, protocol(h)};
	}
	if (port)
		checks[n++] = (struct frame_check){(uint8_t)(l4 + 2), 2, 0xffff, port};
	if (h->tcp)
		/* No options, and an open connection. A reset is sent by a kernel that does not know the
		 * connection. */
		checks[n++] = (struct frame_check){(uint8_t)(l4 + 12), 2, 0xf007, 0x5000};
	return n;
}

struct frame_match frame_match(const struct frame_header *h, uint16_t port)
{
	struct frame_match match = {.header = *h, .port = port, .header_bytes = frame_header_bytes(h)};
	struct frame_check checks[FRAME_CHECKS_MAX];
	uint8_t mask[FRAME_HEADER_MAX] = {0}, value[FRAME_HEADER_MAX] = {0};
	unsigned n = frame_checks(h, port, checks);

	for (unsigned i = 0; i < n; i++) {
		const struct frame_check *c = &checks[i];

		if (c->bytes == 2) {
			put16(mask + c->offset, c->mask);
			put16(value + c->offset, c->value);
		} else {
			mask[c->offset] = (uint8_t)c->mask;
			value[c->offset] = (uint8_t)c->value;
		}
	}
	/* The last word ends where the headers end, so none is read past them. */
	for (uint32_t at = 8; at < match.header_bytes; at += 8) {
		uint32_t offset = at + 8 <= match.header_bytes ? at : match.header_bytes - 8;
		uint32_t w = match.words;

		match.offset[w] = (uint8_t)offset;
		memcpy(&match.mask[w], mask + offset, 8);
		memcpy(&match.value[w], value + offset, 8);
		match.words += match.mask[w] != 0;
	}
	return match;
}

static bool matches(const struct frame_match *match, const uint8_t *l2)
{
	uint64_t differing = 0;

	for (uint32_t i = 0; i < match->words; i++) {
		uint64_t word;

		memcpy(&word, l2 + match->offset[i], sizeof(word));
		differing |= (word & match->mask[i]) ^ match->value[i];
	}
	return !differing;
}

uint8_t *frame_parse(uint8_t *l2, uint32_t bytes, const struct frame_match *match, uint16_t *payload_len)
{
	const struct frame_header *h = &match->header;
	uint32_t l4 = frame_l4_offset(h), behind_ip;

	*payload_len = 0;
	if (bytes < match->header_bytes || !matches(match, l2))
		return NULL;
	if (!h->ipv6 && get16(l2 + frame_ip_offset(h) + 2) < FRAME_IP_BYTES)
		return NULL;
	behind_ip = l4_bytes(l2 + frame_ip_offset(h), h);
	if (behind_ip > bytes - l4 || behind_ip < match->header_bytes - l4)
		return NULL;
	if (!h->tcp && get16(l2 + l4 + 4) != behind_ip)
		return NULL;
	*payload_len = (uint16_t)(behind_ip - (match->header_bytes - l4));
	return l2 + match->header_bytes;
}

struct frame_header frame_detect(const uint8_t *l2, uint32_t bytes)
{
	struct frame_header h = {0};
	const uint8_t *ip;

	if (bytes < FRAME_HEADER_BYTES)
		return h;
	if (get16(l2 + 12) == ETHERTYPE_TAG)
		h.vlan = get16(l2 + 14) & 0x0fff;
	ip = l2 + frame_ip_offset(&h);
	h.ipv6 = get16(ip - 2) == ETHERTYPE_IPV6;
	h.tcp = ip[h.ipv6 ? 6 : 9] == PROTOCOL_TCP;
	return h;
}

uint8_t *frame_parse_any(uint8_t *l2, uint32_t bytes, struct frame_match *kept, uint16_t *payload_len)
{
	uint8_t *payload = frame_parse(l2, bytes, kept, payload_len);
	struct frame_header h;

	if (payload)
		return payload;
	h = frame_detect(l2, bytes);
	if (h.vlan == kept->header.vlan && h.ipv6 == kept->header.ipv6 && h.tcp == kept->header.tcp)
		return NULL;
	*kept = frame_match(&h, kept->port);
	return frame_parse(l2, bytes, kept, payload_len);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

void frame_reflect(uint8_t *l2, const struct frame_header *h)
{
	uint8_t *ip = l2 + frame_ip_offset(h), *l4 = l2 + frame_l4_offset(h);

	swap_bytes(l2, l2 + 6, 6);
	if (h->ipv6)
		swap_bytes(ip + 8, ip + 24, 16);
	else
		swap_bytes(ip + 12, ip + 16, 4);
	swap_bytes(l4, l4 + 2, 2);
}

void frame_write_checksum(uint8_t *l2, const struct frame_header *h, bool blank)
{
	uint8_t *field = l2 + frame_l4_offset(h) + (h->tcp ? 16 : 6);
	uint32_t summed = blank ? frame_header_bytes(h) - frame_l4_offset(h) + FRAME_STAMP_BYTES
	                        : l4_bytes(l2 + frame_ip_offset(h), h);
	uint16_t sum;

	put16(field, 0);
	sum = (uint16_t)~l4_sum(l2, h, summed);
	put16(field, sum || h->tcp ? sum : 0xffff); /* RFC 768: 0 means none */
}

bool frame_checksums_ok(const uint8_t *l2, const struct frame_header *h)
{
	const uint8_t *ip = l2 + frame_ip_offset(h);

	if (!h->ipv6 && fold(sum_words(ip, FRAME_IP_BYTES, 0)) != 0xffff)
		return false;
	if (!frame_needs_checksum(h) && get16(l2 + frame_l4_offset(h) + 6) == 0)
		return true;
	if (!h->tcp && get16(l2 + frame_l4_offset(h) + 6) == 0)
		return false;
	return l4_sum(l2, h, l4_bytes(ip, h)) == 0xffff;
}

/* The words of the padding are a Weyl sequence with a different start for each frame. It is cheap to compute,
 * and consecutive frames differ in every word. */
#define PATTERN_FRAME UINT64_C(0x9e3779b97f4a7c15)
#define PATTERN_WORD UINT64_C(0xd1342543de82ef95)

static uint64_t pattern(uint64_t sequence, uint32_t word)
{
	return (sequence + 1) * PATTERN_FRAME + word * PATTERN_WORD;
}

void frame_fill_padding(uint8_t *payload, uint32_t payload_len, uint64_t sequence)
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

bool frame_padding_ok(const uint8_t *payload, uint32_t payload_len, uint64_t sequence)
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
