/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/dress.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"

static void set_size(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload,
        unsigned i, uint32_t size)
{
	if (ops->sees_l2)
		frame_set_size(payload - frame_header_bytes(&o->ends.header), &o->ends.header, size);
	if (ops->tx_resize)
		ops->tx_resize(io, i, size - FRAME_FCS_BYTES);
}

/* Flow 0 is the endpoint as it is. Others send from 100.64.0.1 (RFC 6598) and so on, from ports above 1023,
 * or from MAC addresses made of the endpoint's. Flows that are all new have both such an address and such a
 * port: a NAT gives a source port below 1024 another one below 1024, of which there are few. */
static struct in_addr flow_address(const struct options *o, uint32_t flow)
{
	if (!flow)
		return o->ends.local_ip;
	if (o->shape.field == SHAPE_NEW)
		flow %= 1u << SHAPE_NEW_ADDRESS_BITS;
	return (struct in_addr){htonl(0x64400000u + flow)};
}

static uint16_t flow_port(const struct options *o, uint32_t flow)
{
	if (!flow)
		return o->ends.udp_port;
	if (o->shape.field == SHAPE_NEW)
		flow >>= SHAPE_NEW_ADDRESS_BITS;
	return (uint16_t)(SHAPE_PORT_FIRST + flow);
}

/* All but the address of SHAPE_ADDRESSES and SHAPE_NEW. */
static void set_rest(const struct options *o, uint8_t *l2, uint32_t flow)
{
	const uint8_t *mac = o->ends.local_mac;
	const uint8_t other[6] = {(uint8_t)(mac[0] ^ 4), mac[4], mac[5], (uint8_t)(flow >> 16),
	        (uint8_t)(flow >> 8), (uint8_t)flow};

	if (o->shape.field == SHAPE_MACS)
		frame_set_source_mac(l2, flow ? other : mac);
	else if (o->shape.field != SHAPE_ADDRESSES)
		frame_set_source_port(l2, &o->ends.header, flow_port(o, flow));
}

static bool has_addresses(const struct options *o)
{
	return o->shape.field == SHAPE_ADDRESSES || o->shape.field == SHAPE_NEW;
}

static void set_flow(const struct options *o, uint8_t *l2, uint32_t flow)
{
	if (has_addresses(o))
		frame_set_source_ip(l2, &o->ends.header, flow_address(o, flow));
	set_rest(o, l2, flow);
}

static void dress_flows(const struct options *o, uint8_t *payload[], unsigned n, uint64_t first)
{
	struct shape_place at = shape_place(&o->shape, first);
	uint32_t header = frame_header_bytes(&o->ends.header);

	for (unsigned i = 0; i < n; i++)
		set_flow(o, payload[i] - header, shape_next_flow(&o->shape, &at));
}

/* The sum of an IPv4 header's words but for checksum and source. */
static uint32_t sum_without_source(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < FRAME_IP_BYTES; i += 2)
		sum += i < 10 || i > 14 ? (uint32_t)ip[i] << 8 | ip[i + 1] : 0;
	return sum;
}

/* The same of IPv4 headers that differ in nothing but the flow. To read them all, lines that the receiver had
 * last, would cost more than the rest of a frame. */
static void dress_like_the_first(const struct options *o, uint8_t *payload[], unsigned n, uint64_t first)
{
	struct shape_place at = shape_place(&o->shape, first);
	uint32_t header = frame_header_bytes(&o->ends.header);
	uint32_t ip = header - frame_ip_offset(&o->ends.header);
	uint32_t sum = sum_without_source(payload[0] - ip);
	bool rest = o->shape.field != SHAPE_ADDRESSES;

	for (unsigned i = 0; i < n; i++) {
		uint32_t flow = shape_next_flow(&o->shape, &at);

		frame_put_source_ip(payload[i] - ip, sum, flow_address(o, flow));
		if (rest)
			set_rest(o, payload[i] - header, flow);
	}
}

void dress_frames(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload[],
        unsigned n, uint64_t first)
{
	const struct shape *s = &o->shape;
	uint32_t at;

	if (shape_has_flows(s) && ops->sees_l2 && n) {
		if (has_addresses(o) && !o->ends.header.ipv6 && !s->cycle)
			dress_like_the_first(o, payload, n, first);
		else
			dress_flows(o, payload, n, first);
	}
	if (!s->cycle)
		return;
	at = (uint32_t)(first % s->cycle);
	for (unsigned i = 0; i < n; i++) {
		set_size(o, ops, io, payload[i], i, s->sizes[at]);
		at = at + 1 == s->cycle ? 0 : at + 1;
	}
}

/* place: of the list; UINT32_MAX: the frame is not denied. */
static void set_denied(const struct options *o, uint8_t *payload, uint32_t place)
{
	const struct denied *d = &o->denied;
	const bool denied = place != UINT32_MAX;
	char text[DENIED_TEXT_MAX + DENIED_DIGITS + 1];

	if (d->port)
		frame_set_target_port(payload - frame_header_bytes(&o->ends.header), &o->ends.header,
		        denied ? (uint16_t)(d->port + place) : o->ends.udp_port);
	if (!d->text)
		return;
	snprintf(text, sizeof(text), "%.*s%05u", (int)DENIED_TEXT_MAX, d->text, place % DENIED_PLACES_MAX);
	if (denied)
		memcpy(payload + FRAME_STAMP_BYTES, text, strlen(text));
	else if (memcmp(payload + FRAME_STAMP_BYTES, text, strlen(d->text)) == 0)
		memset(payload + FRAME_STAMP_BYTES, 0, strlen(text));
}

void dress_denied(const struct options *o, uint8_t *payload[], unsigned n, uint64_t first)
{
	struct shape_place at = denied_start(&o->shape, first);

	for (unsigned i = 0; i < n; i++) {
		uint32_t place = denied_next_place(&o->denied, &o->shape, &at);

		set_denied(o, payload[i], denied_place(&o->denied, place) ? place : UINT32_MAX);
	}
}

void dress_control(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload)
{
	if (o->shape.cycle)
		set_size(o, ops, io, payload, 0, o->packet_size);
	if (shape_has_flows(&o->shape) && ops->sees_l2)
		set_flow(o, payload - frame_header_bytes(&o->ends.header), 0);
	if (o->denied.percent)
		set_denied(o, payload, UINT32_MAX);
}

void dress_seal(const struct options *o, const struct io_ops *ops, uint8_t *payload)
{
	const struct frame_header *h = &o->ends.header;

	if (ops->sees_l2 && (o->touch || frame_needs_seal(h)))
		frame_seal(payload - frame_header_bytes(h), h, !o->touch && !o->denied.text);
}
