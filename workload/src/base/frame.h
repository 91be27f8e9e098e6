/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring frame: Ethernet, IPv4 and UDP headers, then an 18-byte stamp, then padding.
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
#define FRAME_IP_BYTES 20u
#define FRAME_UDP_BYTES 8u
#define FRAME_HEADER_BYTES (FRAME_ETH_BYTES + FRAME_IP_BYTES + FRAME_UDP_BYTES)
#define FRAME_STAMP_BYTES 18u
/* Two VLAN tags, which a frame may have beyond its packet size where frames of any kind are carried. */
#define FRAME_TAGS_BYTES 8u
#define FRAME_PACKET_MIN 64u
#define FRAME_PACKET_MAX 9216u
#define FRAME_SEQUENCE_BITS 48
#define FRAME_SEQUENCE_MASK ((UINT64_C(1) << FRAME_SEQUENCE_BITS) - 1)

#define FRAME_WINDOW_WARMUP 0u
#define FRAME_WINDOW_LAST 65534u
#define FRAME_WINDOW_CONTROL 65535u

_Static_assert(FRAME_HEADER_BYTES + FRAME_STAMP_BYTES + FRAME_FCS_BYTES == FRAME_PACKET_MIN,
        "the stamp fills the least Ethernet frame exactly");

/* Both ends of a flow, as its frames' headers name them. */
struct frame_ends {
	struct in_addr local_ip, remote_ip;
	uint8_t local_mac[6], remote_mac[6];
	uint16_t udp_port; /* of both */
};

/* The first ten bytes of a stamp: who sent it, in which window, which one. */
struct frame_label {
	uint16_t stream, window;
	uint64_t sequence; /* 48 bits */
};

/* Payload bytes behind UDP of a frame of that packet size. */
static inline uint32_t frame_payload_bytes(uint32_t packet_size)
{
	return packet_size - FRAME_FCS_BYTES - FRAME_HEADER_BYTES;
}

/* Stream and window as the upper half of the stamp's first eight bytes. */
static inline uint64_t frame_tag(uint16_t stream, uint16_t window)
{
	return (uint64_t)stream << 48 | (uint64_t)window << 32;
}

/* Whether two tags are of one pair: the low byte of a stream tells pairs apart, the high one launches. */
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

/* Writes the 18 bytes of the stamp. time is in TSC cycles of the sender. */
static inline void frame_stamp(uint8_t *payload, struct frame_label label, uint64_t time)
{
	frame_stamp_tagged(payload, frame_tag(label.stream, label.window), label.sequence, htobe64(time));
}

/* payload must hold at least FRAME_STAMP_BYTES. */
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

/* Writes the 42 bytes of headers of a frame of that packet size from the local end, UDP checksum 0. */
void frame_write_headers(uint8_t *l2, const struct frame_ends *ends, uint32_t packet_size);

/* Makes such a frame one of another packet size: its lengths and the IPv4 checksum, a UDP checksum not. */
void frame_set_size(uint8_t *l2, uint32_t packet_size);

/* Makes such a frame one of another source, the IPv4 checksum too, a UDP checksum not. */
void frame_set_source_ip(uint8_t *l2, struct in_addr ip);
void frame_set_source_port(uint8_t *l2, uint16_t port);
void frame_set_source_mac(uint8_t *l2, const uint8_t mac[6]);

/* Start of the UDP payload and its length, or NULL if these bytes are no unfragmented IPv4/UDP frame to that
 * UDP port whose lengths agree. Reads only within [l2, l2 + bytes). */
uint8_t *frame_parse(uint8_t *l2, uint32_t bytes, uint16_t udp_port, uint16_t *payload_len);

/* Swaps MAC addresses, IP addresses and ports in place; the checksums stay right. */
void frame_reflect(uint8_t *l2);

/* Writes the UDP checksum of a frame made by frame_write_headers(). */
void frame_seal(uint8_t *l2);

/* Whether the IPv4 header's checksum is right, and the UDP checksum too unless it is 0. For frames that
 * frame_parse() has accepted. */
bool frame_checksums_ok(const uint8_t *l2);

/* Fills, or compares, the padding behind the stamp: a pattern that depends on the sequence number. */
void frame_fill(uint8_t *payload, uint32_t payload_len, uint64_t sequence);
bool frame_filled(const uint8_t *payload, uint32_t payload_len, uint64_t sequence);

#endif
