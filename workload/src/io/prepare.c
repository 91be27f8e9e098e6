/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/prepare.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"

static void set_size(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload,
        unsigned i, uint32_t size)
{
	if (ops->sees_l2)
		frame_set_size(payload - frame_header_bytes(&c->ends.header), &c->ends.header, size);
	if (ops->tx_resize)
		ops->tx_resize(io, i, size - FRAME_FCS_BYTES);
}

/* Flow 0 has the endpoint's addresses and port. Other flows send from 100.64.0.1 (RFC 6598) on, from ports
 * above 1023, or from MAC addresses derived from the endpoint's. Flows of one frame each have such an address
 * and such a port. Ports below 1024 are avoided because a NAT maps them to the few other ports below 1024. */
static struct in_addr flow_address(const struct io_config *c, uint32_t flow)
{
	/* Flows of different routes differ by their destination. */
	if (c->routes.count && c->pattern.field == PATTERN_ADDRESSES)
		flow = flow < c->routes.count ? 0 : flow / c->routes.count;
	if (!flow)
		return c->ends.local_ip;
	if (c->pattern.field == PATTERN_NEW)
		flow %= 1u << PATTERN_NEW_ADDRESS_BITS;
	return (struct in_addr){htonl(0x64400000u + flow)};
}

static uint16_t flow_port(const struct io_config *c, uint32_t flow)
{
	if (!flow)
		return c->ends.udp_port;
	if (c->pattern.field == PATTERN_NEW)
		flow >>= PATTERN_NEW_ADDRESS_BITS;
	return (uint16_t)(PATTERN_PORT_FIRST + flow);
}

/* Sets what differs between flows, except the address of PATTERN_ADDRESSES and PATTERN_NEW. */
static void set_rest(const struct io_config *c, uint8_t *l2, uint32_t flow)
{
	const uint8_t *mac = c->ends.local_mac;
	const uint8_t other[6] = {(uint8_t)(mac[0] ^ 4), mac[4], mac[5], (uint8_t)(flow >> 16),
	        (uint8_t)(flow >> 8), (uint8_t)flow};

	if (c->pattern.field == PATTERN_MACS)
		frame_set_source_mac(l2, flow ? other : mac);
	else if (c->pattern.field != PATTERN_ADDRESSES)
		frame_set_source_port(l2, &c->ends.header, flow_port(c, flow));
}

static bool has_addresses(const struct io_config *c)
{
	return c->pattern.field == PATTERN_ADDRESSES || c->pattern.field == PATTERN_NEW;
}

static void set_flow(const struct io_config *c, uint8_t *l2, uint32_t flow)
{
	if (has_addresses(c))
		frame_set_source_ip(l2, &c->ends.header, flow_address(c, flow));
	set_rest(c, l2, flow);
}

static struct in_addr flow_target(const struct io_config *c, uint32_t flow)
{
	return c->routes.count ? frame_route_ip(pattern_route(&c->routes, flow)) : c->ends.remote_ip;
}

static void set_flows(const struct io_config *c, uint8_t *payload[], unsigned n, uint64_t first)
{
	struct pattern_place at = pattern_place(&c->pattern, first);
	uint32_t header = frame_header_bytes(&c->ends.header);

	for (unsigned i = 0; i < n; i++) {
		uint32_t flow = pattern_next_flow(&c->pattern, &at);

		set_flow(c, payload[i] - header, flow);
		if (c->routes.count)
			frame_set_route(
			        payload[i] - header, &c->ends.header, pattern_route(&c->routes, flow));
	}
}

/* Returns the sum of an IPv4 header's words except checksum and addresses. */
static uint32_t sum_without_ips(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 10; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	return sum;
}

/* Sets the flows of IPv4 headers that differ only in the flow, without reading them. Reading lines that the
 * receiver had last would cost more than the rest of a frame. */
static void set_flows_alike(const struct io_config *c, uint8_t *payload[], unsigned n, uint64_t first)
{
	struct pattern_place at = pattern_place(&c->pattern, first);
	uint32_t header = frame_header_bytes(&c->ends.header);
	uint32_t ip = header - frame_ip_offset(&c->ends.header);
	uint32_t sum = sum_without_ips(payload[0] - ip);
	bool rest = c->pattern.field != PATTERN_ADDRESSES;

	for (unsigned i = 0; i < n; i++) {
		uint32_t flow = pattern_next_flow(&c->pattern, &at);

		frame_put_ips(payload[i] - ip, sum, flow_address(c, flow), flow_target(c, flow));
		if (rest)
			set_rest(c, payload[i] - header, flow);
	}
}

void prepare_frames(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload[],
        unsigned n, uint64_t first)
{
	const struct flow_pattern *s = &c->pattern;
	uint32_t at;

	if ((pattern_has_flows(s) || c->routes.count) && ops->sees_l2 && n) {
		if (has_addresses(c) && !c->ends.header.ipv6 && !s->cycle)
			set_flows_alike(c, payload, n, first);
		else
			set_flows(c, payload, n, first);
	}
	if (!s->cycle)
		return;
	at = (uint32_t)(first % s->cycle);
	for (unsigned i = 0; i < n; i++) {
		set_size(c, ops, io, payload[i], i, s->sizes[at]);
		at = at + 1 == s->cycle ? 0 : at + 1;
	}
}

/* place: entry of the list; UINT32_MAX: the frame is not to be dropped. */
static void set_acl_mark(const struct io_config *c, uint8_t *payload, uint32_t place)
{
	const struct acl *d = &c->acl;
	const bool acl_drops = place != UINT32_MAX;
	char text[ACL_TEXT_MAX + ACL_DIGITS + 1];

	if (d->port)
		frame_set_target_port(payload - frame_header_bytes(&c->ends.header), &c->ends.header,
		        acl_drops ? (uint16_t)(d->port + place) : c->ends.udp_port);
	if (!d->text)
		return;
	snprintf(text, sizeof(text), "%.*s%05u", (int)ACL_TEXT_MAX, d->text, place % ACL_PLACES_MAX);
	if (acl_drops)
		memcpy(payload + FRAME_STAMP_BYTES, text, strlen(text));
	else if (memcmp(payload + FRAME_STAMP_BYTES, text, strlen(d->text)) == 0)
		memset(payload + FRAME_STAMP_BYTES, 0, strlen(text));
}

void prepare_acl(const struct io_config *c, uint8_t *payload[], unsigned n, uint64_t first)
{
	struct pattern_place at = acl_start(&c->pattern, first);

	for (unsigned i = 0; i < n; i++) {
		uint32_t place = acl_next_place(&c->acl, &c->pattern, &at);

		set_acl_mark(c, payload[i], acl_denies_place(&c->acl, place) ? place : UINT32_MAX);
	}
}

void prepare_control(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload)
{
	if (c->pattern.cycle)
		set_size(c, ops, io, payload, 0, c->packet_size);
	if (pattern_has_flows(&c->pattern) && ops->sees_l2)
		set_flow(c, payload - frame_header_bytes(&c->ends.header), 0);
	if (c->routes.count && ops->sees_l2)
		frame_set_target_ip(
		        payload - frame_header_bytes(&c->ends.header), &c->ends.header, c->ends.remote_ip);
	if (c->acl.percent)
		set_acl_mark(c, payload, UINT32_MAX);
}

void prepare_checksum(const struct io_config *c, const struct io_ops *ops, uint8_t *payload)
{
	const struct frame_header *h = &c->ends.header;

	if (ops->sees_l2 && (c->check_payload || frame_needs_checksum(h)))
		frame_write_checksum(payload - frame_header_bytes(h), h, !c->check_payload && !c->acl.text);
}
