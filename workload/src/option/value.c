/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/denied.h"
#include "option/header.h"
#include "option/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plain decimal number with an optional k or M; false unless the whole text is one. */
static bool parse_number(const char *text, bool suffix, double *value)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	if (text[strspn(text, "0123456789.eE+-kM")] != '\0') /* strtod also reads hexadecimal, inf and nan */
		return false;
	errno = 0;
	*value = strtod(text, &end);
	if (end == text || errno)
		return false;
	if (suffix && (*end == 'k' || *end == 'M'))
		*value *= *end++ == 'k' ? 1e3 : 1e6;
	return *end == '\0' && isfinite(*value);
}

static bool parse_fault(const struct option_row *row, const char *text, struct options *o)
{
	static const char *const KINDS[] = {NULL, "drop", "duplicate", "reorder"};
	const char *colon = strchr(text, ':');
	double every;

	if (!colon || !parse_number(colon + 1, false, &every) || every < row->min || every > row->max ||
	        every != floor(every))
		return false;
	for (int kind = FAULT_DROP; kind <= FAULT_REORDER; kind++) {
		if (strlen(KINDS[kind]) == (size_t)(colon - text) &&
		        strncmp(text, KINDS[kind], strlen(KINDS[kind])) == 0) {
			o->fault = (enum fault_kind)kind;
			o->fault_every = (uint32_t)every;
			return true;
		}
	}
	return false;
}

/* FROM:TO:STEPS, ascending. */
static bool parse_train(const struct option_row *row, const char *text, struct options *o)
{
	double parts[3];
	char one[24];

	for (unsigned i = 0; i < 3; i++) {
		size_t length = strcspn(text, ":");

		if (length >= sizeof(one) || (text[length] == ':') != (i < 2))
			return false;
		memcpy(one, text, length);
		one[length] = '\0';
		if (!parse_number(one, true, &parts[i]) || parts[i] < row->min || parts[i] > row->max ||
		        parts[i] != floor(parts[i]))
			return false;
		text += length + 1;
	}
	o->train_from = (uint32_t)parts[0];
	o->train_to = (uint32_t)parts[1];
	o->train_steps = (uint32_t)parts[2];
	return parts[0] <= parts[1];
}

/* SIZE,SIZE,...; the packet size becomes that of the longest. */
static bool parse_sizes(const struct option_row *row, const char *text, struct options *o)
{
	struct shape *s = &o->shape;
	char one[24];
	double size;

	s->cycle = 0;
	o->packet_size = 0;
	for (;; text++) {
		size_t length = strcspn(text, ",");

		if (length >= sizeof(one) || s->cycle == SHAPE_CYCLE_MAX)
			return false;
		memcpy(one, text, length);
		one[length] = '\0';
		if (!parse_number(one, false, &size) || size < row->min || size > row->max ||
		        size != floor(size))
			return false;
		s->sizes[s->cycle++] = (uint16_t)size;
		o->packet_size = size > o->packet_size ? (uint32_t)size : o->packet_size;
		text += length;
		if (!*text)
			return true;
	}
}

/* RATE,RATE,... */
static bool parse_trace(const struct option_row *row, const char *text, struct options *o)
{
	char one[24];

	for (o->trace_seconds = 0;; text++) {
		size_t length = strcspn(text, ",");
		double *rate = &o->trace[o->trace_seconds];

		if (length >= sizeof(one) || o->trace_seconds++ == TRACE_MAX)
			return false;
		memcpy(one, text, length);
		one[length] = '\0';
		if (!parse_number(one, true, rate) || *rate < row->min || *rate > row->max)
			return false;
		text += length;
		if (!*text)
			return true;
	}
}

/* N, N:FIELD, N:zipf, N:FIELD:zipf or new. */
static bool parse_flows(const struct option_row *row, const char *text, struct options *o)
{
	static const char *const FIELDS[] = {"addresses", "ports", "macs"};
	struct shape *s = &o->shape;
	size_t length = strcspn(text, ":");
	char number[24];
	double flows;

	if (strcmp(text, "new") == 0) {
		s->flows = UINT32_MAX;
		s->field = SHAPE_NEW;
		s->zipf = false;
		return true;
	}
	if (length >= sizeof(number))
		return false;
	memcpy(number, text, length);
	number[length] = '\0';
	if (!parse_number(number, true, &flows) || flows < row->min || flows > row->max ||
	        flows != floor(flows))
		return false;
	s->flows = (uint32_t)flows;
	s->field = SHAPE_ADDRESSES;
	s->zipf = false;
	text += length;
	for (unsigned i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++) {
		length = strlen(FIELDS[i]);
		if (*text == ':' && strncmp(text + 1, FIELDS[i], length) == 0) {
			s->field = (enum shape_field)i;
			text += 1 + length;
			break;
		}
	}
	if (strcmp(text, ":zipf") == 0) {
		s->zipf = true;
		return true;
	}
	return *text == '\0';
}

const char *const PROTOCOL_NAMES[PROTOCOLS] = {"udp", "tcp", "resp", "memcached", "http"};

static bool parse_protocol(const char *text, struct options *o)
{
	for (unsigned i = 0; i < PROTOCOLS; i++) {
		if (strcmp(text, PROTOCOL_NAMES[i]) == 0) {
			o->protocol = (enum protocol)i;
			return true;
		}
	}
	return false;
}

void option_expectation(const struct option_row *row, char *text, size_t size)
{
	switch (row->kind) {
	case KIND_RATE:
	case KIND_SECONDS:
	case KIND_MICROSECONDS:
		snprintf(text, size, "a number from %.15g to %.15g", row->min, row->max);
		break;
	case KIND_IO:
		snprintf(text, size, "'null'");
		break;
	case KIND_PROTOCOL:
		snprintf(text, size, "udp, tcp, resp, memcached or http");
		break;
	case KIND_FAULT:
		snprintf(text, size, "drop:N, duplicate:N or reorder:N with N from %.15g to %.15g", row->min,
		        row->max);
		break;
	case KIND_TRAIN:
		snprintf(text, size, "FROM:TO:STEPS, whole numbers from %.15g to %.15g with FROM at most TO",
		        row->min, row->max);
		break;
	case KIND_TRACE:
		snprintf(text, size, "1 to %u rates from %.15g to %.15g with commas", TRACE_MAX, row->min,
		        row->max);
		break;
	case KIND_FLOWS:
		snprintf(text, size,
		        "a whole number from %.15g to %.15g, behind it :addresses, :ports or :macs, and "
		        ":zipf; or new",
		        row->min, row->max);
		break;
	case KIND_HEADER:
		snprintf(text, size,
		        "udp4, tcp4, udp6 or tcp6, and +vlan%.15g to +vlan%.15g behind it or not", row->min,
		        row->max);
		break;
	case KIND_DENIED:
		snprintf(text, size,
		        "PERCENT:PLACES:MARK, %.15g to %.15g of up to %u places, at least one, and a port or "
		        "a "
		        "text",
		        row->min, row->max, DENIED_PLACES_MAX);
		break;
	case KIND_SIZES:
		snprintf(text, size, "up to %u whole numbers from %.15g to %.15g with commas between",
		        SHAPE_CYCLE_MAX, row->min, row->max);
		break;
	case KIND_TEXT:
	case KIND_INTERFACE:
		snprintf(text, size, "a name");
		break;
	default:
		snprintf(text, size, "a whole number from %.15g to %.15g", row->min, row->max);
	}
}

bool option_store(const struct option_row *row, const char *text, struct options *o)
{
	void *field = (char *)o + row->offset;
	double v = 0;

	switch (row->kind) {
	case KIND_FLAG:
		*(bool *)field = true;
		return true;
	case KIND_TEXT:
		*(const char **)field = text;
		return *text != '\0';
	case KIND_INTERFACE:
		*(const char **)field = text;
		if (o->raw_interface_count < FORWARD_PORTS_MAX)
			o->raw_interfaces[o->raw_interface_count] = text;
		o->raw_interface_count++;
		return *text != '\0';
	case KIND_IO:
		o->io = IO_NULL;
		return strcmp(text, "null") == 0;
	case KIND_PROTOCOL:
		return parse_protocol(text, o);
	case KIND_FAULT:
		return parse_fault(row, text, o);
	case KIND_TRAIN:
		return parse_train(row, text, o);
	case KIND_TRACE:
		return parse_trace(row, text, o);
	case KIND_SIZES:
		return parse_sizes(row, text, o);
	case KIND_FLOWS:
		return parse_flows(row, text, o);
	case KIND_HEADER:
		return header_store(row, text, field);
	case KIND_DENIED:
		return denied_store(row, text, field);
	default:
		break;
	}
	if (!parse_number(text, row->kind == KIND_RATE, &v) || v < row->min || v > row->max)
		return false;
	if (row->kind == KIND_RATE || row->kind == KIND_SECONDS || row->kind == KIND_MICROSECONDS) {
		*(double *)field = v;
		return true;
	}
	if (v != floor(v))
		return false;
	if (row->kind == KIND_U16)
		*(uint16_t *)field = (uint16_t)v;
	else if (row->kind == KIND_U32)
		*(uint32_t *)field = (uint32_t)v;
	else
		*(uint64_t *)field = (uint64_t)v;
	return true;
}
