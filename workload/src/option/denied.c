/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/denied.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number from `least` to `most` up to a colon or the end; moves on behind it. */
static bool take_number(const char **text, unsigned long least, unsigned long most, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*number = strtoul(*text, &end, 10);
	*text = end;
	return (*end == ':' || !*end) && *number >= least && *number <= most;
}

bool denied_store(const struct option_row *row, const char *text, struct denied *d)
{
	unsigned long percent, places, port;

	if (!take_number(&text, (unsigned long)row->min, (unsigned long)row->max, &percent) ||
	        *text++ != ':' || !take_number(&text, 1, DENIED_PLACES_MAX, &places) || *text++ != ':' ||
	        percent * places < 100)
		return false;
	*d = (struct denied){.percent = (uint32_t)percent, .places = (uint32_t)places};
	if (!isdigit((unsigned char)*text)) {
		d->text = text;
		return *text && strlen(text) <= DENIED_TEXT_MAX;
	}
	if (!take_number(&text, 1, UINT16_MAX - places + 1, &port) || *text)
		return false;
	d->port = (uint16_t)port;
	return true;
}

static uint32_t shortest(const struct options *o)
{
	uint32_t least = o->packet_size;

	for (uint32_t i = 0; i < o->shape.cycle; i++)
		least = o->shape.sizes[i] < least ? o->shape.sizes[i] : least;
	return least;
}

bool denied_fits(const struct options *o, char *text, size_t size)
{
	const bool own = o->denied.percent, peer = o->peer_denied.percent;
	const char *name = own ? "denied" : "peer-denied";
	uint32_t needed = frame_packet_min(&o->ends.header);

	if (!own && !peer)
		return true;
	if (o->denied.text)
		needed += (uint32_t)strlen(o->denied.text) + DENIED_DIGITS;
	if (o->app->any_frame || o->app->forwards || o->app->sockets || o->app->round_trip)
		snprintf(text, size, "--%s has no place: take send, recv or duplex, not %.40s", name,
		        o->app_name);
	else if (own && !o->app->sends)
		snprintf(text, size, "%.40s sends no frames of its own: take --peer-denied", o->app_name);
	else if (peer && o->app->sends && !o->app->duplex)
		snprintf(text, size, "%.40s counts no frames: take --denied", o->app_name);
	else if (o->io == IO_UDP || o->io == IO_NULL)
		snprintf(text, size, "--%s needs -R IF, -X IF or dpdk-%.40s: a UDP socket has one port", name,
		        o->app->name);
	else if (o->fault != FAULT_NONE)
		snprintf(text, size,
		        "--fault changes frames by their numbers, and --%s has them denied: leave "
		        "one of them out",
		        name);
	else if (shortest(o) < needed)
		snprintf(text, size,
		        "packet size %u has no room for the text of --denied: send at least %u bytes",
		        shortest(o), needed);
	else
		return true;
	return false;
}
