/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/header.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool header_store(const struct option_row *row, const char *text, struct frame_header *h)
{
	static const char *const NAMES[] = {"udp4", "tcp4", "udp6", "tcp6"};
	static const char TAG[] = "+vlan";
	char *end;
	unsigned long vlan;

	for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
		if (strncmp(text, NAMES[i], strlen(NAMES[i])) != 0)
			continue;
		*h = (struct frame_header){.tcp = i % 2, .ipv6 = i / 2};
		text += strlen(NAMES[i]);
		if (!*text)
			return true;
		if (strncmp(text, TAG, sizeof(TAG) - 1) != 0)
			return false;
		text += sizeof(TAG) - 1;
		vlan = strtoul(text, &end, 10);
		if (!isdigit((unsigned char)*text) || *end || vlan < row->min || vlan > row->max)
			return false;
		h->vlan = (uint16_t)vlan;
		return true;
	}
	return false;
}

bool header_fits(const struct options *o, char *text, size_t size)
{
	const struct frame_header *h = &o->ends.header;
	uint32_t shortest = o->packet_size;

	if (frame_is_plain(h))
		return true;
	for (uint32_t i = 0; i < o->shape.cycle; i++)
		shortest = o->shape.sizes[i] < shortest ? o->shape.sizes[i] : shortest;
	if (o->app->any_frame || o->app->forwards || o->app->sockets)
		snprintf(text, size, "--header has no place: %.40s makes no frames", o->app_name);
	else if (o->io == IO_UDP)
		snprintf(text, size,
		        "--header needs -R IF or dpdk-%.40s: a UDP socket sends udp4 without a tag",
		        o->app->name);
	else if (o->io == IO_XDP && h->vlan)
		snprintf(text, size,
		        "--header with a VLAN tag needs -R %.60s: an AF_XDP socket may not get to see the "
		        "tag",
		        o->xdp_interface);
	else if (shortest < frame_packet_min(h))
		snprintf(text, size, "packet size %u has no room for that --header: send at least %u bytes",
		        shortest, frame_packet_min(h));
	else
		return true;
	return false;
}
