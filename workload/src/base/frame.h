/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring frame: Ethernet, IPv4 and UDP headers (or others), then an 18-byte stamp, then padding.
 *
 * Lengths named "bytes" are those of the buffer, without FCS; a packet size counts the FCS (RFC 2544).
 */
#ifndef ICBENCH_FRAME_H
#define ICBENCH_FRAME_H

#include <endian.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FRAME_FCS_BYTES 4u
#define FRAME_ETH_BYTES 14u
#define FRAME_VLAN_BYTES 4u
#define FRAME_IP_BYTES 20u
#define FRAME_IPV6_BYTES 40u
#define FRAME_UDP_BYTES 8u
#define FRAME_TCP_BYTES 20u
/* Headers of Ethernet, IPv4 and UDP. */
#define FRAME_HEADER_BYTES (FRAME_ETH_BYTES + FRAME_IP_BYTES + FRAME_UDP_BYTES)
#define FRAME_STAMP_BYTES 18u
/* Two VLAN tags, which a frame of any kind may have in addition to its packet size. */
#define FRAME_TAGS_BYTES 8u
/* The longest headers: a tag, IPv6, TCP. */
#define FRAME_HEADER_MAX (FRAME_ETH_BYTES + FRAME_VLAN_BYTES + FRAME_IPV6_BYTES + FRAME_TCP_BYTES)
#define FRAME_VLAN_LAST 4094u
#define FRAME_PACKET_MIN 64u
#define FRAME_PACKET_MAX 9216u
/* The largest frame without a VLAN tag on a link with an MTU of 1500. */
#define FRAME_PACKET_STANDARD 1518u
#define FRAME_SEQUENCE_BITS 48
#define FRAME_SEQUENCE_MASK ((UINT64_C(1) << FRAME_SEQUENCE_BITS) - 1)

#define FRAME_WINDOW_WARMUP 0u
#define FRAME_WINDOW_LAST 65534u
#define FRAME_WINDOW_CONTROL 65535u

_Static_assert(FRAME_HEADER_BYTES + FRAME_STAMP_BYTES + FRAME_FCS_BYTES == FRAME_PACKET_MIN,
        "the stamp fills the least Ethernet frame exactly");

/* The headers before the stamp; all zero: Ethernet, IPv4, UDP. */
struct frame_header {
	bool ipv6, tcp;
	uint16_t vlan; /* VLAN of the tag, 1 to 4094; 0: no tag */
};

/* Both ends of a flow, as written in the headers of its frames. */
struct frame_ends {
	struct in_addr local_ip, remote_ip;
	uint8_t local_mac[6], remote_mac[6];
	uint16_t udp_port; /* of both ends, for TCP as well */
	struct frame_header header;
};

/* The first ten bytes of a stamp: stream, window and number. */
struct frame_label {
	uint16_t stream, window;
	uint64_t sequence; /* 48 bits */
};

static inline uint32_t frame_ip_offset(const struct frame_header *h)
{
	return FRAME_ETH_BYTES + (h->vlan ? FRAME_VLAN_BYTES : 0);
}

/* Offset of the UDP or TCP header. */
static inline uint32_t frame_l4_offset(const struct frame_header *h)
{
	return frame_ip_offset(h) + (h->ipv6 ? FRAME_IPV6_BYTES : FRAME_IP_BYTES);
}

static inline uint32_t frame_header_bytes(const struct frame_header *h)
{
	return frame_l4_offset(h) + (h->tcp ? FRAME_TCP_BYTES : FRAME_UDP_BYTES);
}

/* Returns the smallest packet size with these headers: 64, 76 with TCP, 84 with IPv6, 96 with both, 4 more
 * with a tag. */
static inline uint32_t frame_packet_min(const struct frame_header *h)
{
	return frame_header_bytes(h) + FRAME_STAMP_BYTES + FRAME_FCS_BYTES;
}

/* Whether the headers are Ethernet, IPv4 and UDP without a tag. */
static inline bool frame_is_plain(const struct frame_header *h)
{
	return !h->ipv6 && !h->tcp && !h->vlan;
}

/* Whether a checksum after IP is mandatory. Only UDP over IPv4 can go without. */
static inline bool frame_needs_checksum(const struct frame_header *h)
{
	return h->ipv6 || h->tcp;
}

/* Returns the bytes of a packet size that are not payload. */
static inline uint32_t frame_overhead_bytes(const struct frame_header *h)
{
	return frame_header_bytes(h) + FRAME_FCS_BYTES;
}

/* Returns the payload bytes of a frame of that packet size. */
static inline uint32_t frame_payload_bytes(const struct frame_header *h, uint32_t packet_size)
{
	return packet_size - frame_overhead_bytes(h);
}

/* Returns stream and window as the upper half of the first eight bytes of a stamp. */
static inline uint64_t frame_tag(uint16_t stream, uint16_t window)
{
	return (uint64_t)stream << 48 | (uint64_t)window << 32;
}

/* Whether two tags belong to one pair. The low byte of a stream identifies the pair, the high byte the
 * launch. */
static inline bool frame_same_pair(uint64_t a, uint64_t b)
{
	return ((a ^ b) >> 48 & UINT8_MAX) == 0;
}

static inline void frame_stamp_tagged(uint8_t *payload, uint64_t tag, uint64_t sequence, uint64_t time_be)
{
	uint64_t head = htobe64(tag | (sequence >> 16 & UINT32_MAX));
	uint16_t low = htobe16((uint16_t)sequence);

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + 8, &low, sizeof(low));
	memcpy(payload + 10, &time_be, sizeof(time_be));
}

/* Writes the 18 bytes of the stamp. `time` is in TSC cycles of the sender. */
static inline void frame_stamp(uint8_t *payload, struct frame_label label, uint64_t time)
{
	frame_stamp_tagged(payload, frame_tag(label.stream, label.window), label.sequence, htobe64(time));
}

/* Reads the label of a payload of at least FRAME_STAMP_BYTES. */
static inline struct frame_label frame_label(const uint8_t *payload)
{
	uint64_t head;
	uint16_t low;

	memcpy(&head, payload, sizeof(head));
	memcpy(&low, payload + 8, sizeof(low));
	head = be64toh(head);
	return (struct frame_label){
	        .stream = (uint16_t)(head >> 48),
	        .window = (uint16_t)(head >> 32),
	        .sequence = (head & UINT32_MAX) << 16 | be16toh(low),
	};
}

static inline uint64_t frame_time(const uint8_t *payload)
{
	uint64_t time;

	memcpy(&time, payload + 10, sizeof(time));
	return be64toh(time);
}

/* Derives the IPv6 address of an end: fd69:6362:656e:6368::/96 (RFC 4193) followed by its IPv4 address. */
void frame_ipv6(uint8_t ipv6[16], struct in_addr ip);

/* Writes the headers of a frame of that packet size from the local end, with UDP or TCP checksum 0. A TCP
 * segment is one of an open connection: ACK, and always the same numbers. */
void frame_write_headers(uint8_t *l2, const struct frame_ends *ends, uint32_t packet_size);

/* Sets the packet size of such a frame: its lengths and the IPv4 checksum, no other checksum. */
void frame_set_size(uint8_t *l2, const struct frame_header *h, uint32_t packet_size);

/* Sets the source of such a frame, including the IPv4 checksum, but no other checksum. */
void frame_set_source_ip(uint8_t *l2, const struct frame_header *h, struct in_addr ip);
/* The same for the destination. */
void frame_set_target_ip(uint8_t *l2, const struct frame_header *h, struct in_addr ip);

/* Returns the destination below a route's prefix, a /28 of 10.0.0.0/8: its first address but one. */
static inline struct in_addr frame_route_ip(uint32_t route)
{
	return (struct in_addr){htonl(0x0a000001u + (route << 4))};
}

/* Sets the destination to the one below a route's prefix; over IPv6 that is ::1 of a /64 of fd0a::/32. */
void frame_set_route(uint8_t *l2, const struct frame_header *h, uint32_t route);
void frame_set_source_port(uint8_t *l2, const struct frame_header *h, uint16_t port);

/* Sets both addresses of an IPv4 header without reading it, so that its cache line need not be present. `sum`
 * is the sum of its words except checksum and addresses. */
static inline void frame_put_ips(uint8_t *ip, uint32_t sum, struct in_addr source, struct in_addr target)
{
	uint32_t from = ntohl(source.s_addr), to = ntohl(target.s_addr);
	uint16_t checksum;

	sum += (from >> 16) + (from & 0xffff) + (to >> 16) + (to & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	checksum = htons((uint16_t) ~(sum + (sum >> 16)));
	memcpy(ip + 10, &checksum, sizeof(checksum));
	memcpy(ip + 12, &source, sizeof(source));
	memcpy(ip + 16, &target, sizeof(target));
}

void frame_set_source_mac(uint8_t *l2, const uint8_t mac[6]);

/* Sets the destination port of such a frame, without updating a checksum. */
static inline void frame_set_target_port(uint8_t *l2, const struct frame_header *h, uint16_t port)
{
	uint16_t port_be = htobe16(port);

	memcpy(l2 + frame_l4_offset(h) + 2, &port_be, sizeof(port_be));
}

/* Reinserts a VLAN tag that the kernel removed. Returns the new start of the frame, FRAME_VLAN_BYTES before
 * l2; that memory must exist. */
uint8_t *frame_put_tag(uint8_t *l2, uint16_t ethertype, uint16_t control);

/* A check that identifies frames with an end's headers: the `bytes` (1 or 2) at `offset`, as a big-endian
 * number, have `value` under the mask. */
struct frame_check {
	uint8_t offset, bytes;
	uint16_t mask, value;
};

#define FRAME_CHECKS_MAX 8u

/* Returns the number of checks. They do not compare lengths. Port 0 is any. */
unsigned frame_checks(
        const struct frame_header *h, uint16_t port, struct frame_check checks[FRAME_CHECKS_MAX]);

/* The same checks, combined into words for fast comparison. */
struct frame_match {
	struct frame_header header;
	uint16_t port;
	uint32_t header_bytes, words;
	uint8_t offset[FRAME_CHECKS_MAX];
	uint64_t mask[FRAME_CHECKS_MAX], value[FRAME_CHECKS_MAX];
};

struct frame_match frame_match(const struct frame_header *h, uint16_t port);

/* Returns the start of the payload after UDP or TCP and its length, or NULL if the bytes are no unfragmented
 * frame with such headers, that port and consistent lengths. Reads only [l2, l2 + bytes). */
uint8_t *frame_parse(uint8_t *l2, uint32_t bytes, const struct frame_match *match, uint16_t *payload_len);

/* Guesses the headers of a frame; frame_parse() verifies them. */
struct frame_header frame_detect(const uint8_t *l2, uint32_t bytes);

/* frame_parse() for a frame with any headers. Most frames have the headers of the previous one, so the match
 * is kept. */
uint8_t *frame_parse_any(uint8_t *l2, uint32_t bytes, struct frame_match *kept, uint16_t *payload_len);

/* Swaps MAC addresses, IP addresses and ports in place. The checksums stay valid. */
void frame_reflect(uint8_t *l2, const struct frame_header *h);

/* Writes the UDP or TCP checksum of a frame made by frame_write_headers(). `blank`: all bytes of the padding
 * are zero. */
void frame_write_checksum(uint8_t *l2, const struct frame_header *h, bool blank);

/* Whether the IPv4 checksum is valid, and the UDP or TCP checksum as well unless it is UDP's 0 over IPv4. For
 * frames that frame_parse() has accepted. */
bool frame_checksums_ok(const uint8_t *l2, const struct frame_header *h);

/* Fills or compares the padding after the stamp with a pattern that depends on the sequence number. */
void frame_fill_padding(uint8_t *payload, uint32_t payload_len, uint64_t sequence);
bool frame_padding_ok(const uint8_t *payload, uint32_t payload_len, uint64_t sequence);

#endif
