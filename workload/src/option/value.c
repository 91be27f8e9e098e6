/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parses a plain decimal number with an optional k or M. Returns false unless the whole text is one. */
static bool parse_number(const char *text, bool suffix, double *value)
{
	char *end;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	if (text[strspn(text, "0123456789.eE+-kM")] !=
	        '\0') /* strtod() also accepts hexadecimal numbers, inf and nan */
		return false;
	errno = 0;
	*value = strtod(text, &end);
	if (end == text || errno)
		return false;
	if (suffix && (*end == 'k' || *end == 'M'))
		*value *= *end++ == 'k' ? 1e3 : 1e6;
	return *end == '\0' && isfinite(*value);
}

/* Parses a number up to the separator or the end, within the row's bounds. Advances to where it ends. */
static bool parse_part(
        const struct option_row *row, const char **text, char separator, bool suffix, double *value)
{
	const char end[] = {separator, '\0'}, *begin = *text;
	size_t length = strcspn(begin, end);
	char part[24];

	*text += length;
	if (separator) {
		if (length >= sizeof(part))
			return false;
		memcpy(part, begin, length);
		part[length] = '\0';
		begin = part;
	}
	return parse_number(begin, suffix, value) && *value >= row->min && *value <= row->max;
}

static bool parse_whole(
        const struct option_row *row, const char **text, char separator, bool suffix, double *value)
{
	return parse_part(row, text, separator, suffix, value) && *value == floor(*value);
}

static void *field_of(const struct option_row *row, struct options *o)
{
	return (char *)o + row->offset;
}

static bool store_flag(const struct option_row *row, const char *text, struct options *o)
{
	(void)text;
	*(bool *)field_of(row, o) = true;
	return true;
}

static bool store_text(const struct option_row *row, const char *text, struct options *o)
{
	*(const char **)field_of(row, o) = text;
	return *text != '\0';
}

static bool store_interface(const struct option_row *row, const char *text, struct options *o)
{
	if (o->io.interface_count < IO_PORTS_MAX)
		o->io.interfaces[o->io.interface_count] = text;
	o->io.interface_count++;
	return store_text(row, text, o);
}

static bool store_double(const struct option_row *row, const char *text, struct options *o)
{
	return parse_part(row, &text, '\0', row->kind == KIND_RATE, field_of(row, o));
}

static bool store_u16(const struct option_row *row, const char *text, struct options *o)
{
	double value;

	if (!parse_whole(row, &text, '\0', false, &value))
		return false;
	*(uint16_t *)field_of(row, o) = (uint16_t)value;
	return true;
}

static bool store_u32(const struct option_row *row, const char *text, struct options *o)
{
	double value;

	if (!parse_whole(row, &text, '\0', false, &value))
		return false;
	*(uint32_t *)field_of(row, o) = (uint32_t)value;
	return true;
}

static bool store_u64(const struct option_row *row, const char *text, struct options *o)
{
	double value;

	if (!parse_whole(row, &text, '\0', false, &value))
		return false;
	*(uint64_t *)field_of(row, o) = (uint64_t)value;
	return true;
}

/* The name of a back end that is chosen by name. */
static bool store_backend(const struct option_row *row, const char *text, struct options *o)
{
	const struct io_backend *backend = io_backend_find(text, 0);

	return backend && backend->flags & IO_BY_NAME && store_text(row, text, o);
}

/* KIND:N */
static bool store_fault(const struct option_row *row, const char *text, struct options *o)
{
	static const char *const KINDS[] = {NULL, "drop:", "duplicate:", "reorder:"};
	double every;

	for (int kind = FAULT_DROP; kind <= FAULT_REORDER; kind++) {
		const char *number = text + strlen(KINDS[kind]);

		if (strncmp(text, KINDS[kind], strlen(KINDS[kind])) != 0)
			continue;
		if (!parse_whole(row, &number, '\0', false, &every))
			return false;
		o->fault = (struct fault){(enum fault_kind)kind, (uint32_t)every};
		return true;
	}
	return false;
}

/* FROM:TO:STEPS, ascending. */
static bool store_train(const struct option_row *row, const char *text, struct options *o)
{
	double parts[3];

	for (unsigned i = 0; i < 3; i++, text++)
		if (!parse_whole(row, &text, ':', true, &parts[i]) || (*text == ':') != (i < 2))
			return false;
	o->train_from = (uint32_t)parts[0];
	o->train_to = (uint32_t)parts[1];
	o->train_steps = (uint32_t)parts[2];
	return parts[0] <= parts[1];
}

/* SIZE,SIZE,...; the packet size becomes that of the longest. */
static bool store_sizes(const struct option_row *row, const char *text, struct options *o)
{
	struct flow_pattern *s = &o->io.pattern;
	double size;

	s->cycle = 0;
	o->io.packet_size = 0;
	for (;; text++) {
		if (s->cycle == PATTERN_CYCLE_MAX || !parse_whole(row, &text, ',', false, &size))
			return false;
		s->sizes[s->cycle++] = (uint16_t)size;
		o->io.packet_size = size > o->io.packet_size ? (uint32_t)size : o->io.packet_size;
		if (!*text)
			return true;
	}
}

/* RATE,RATE,... */
static bool store_trace(const struct option_row *row, const char *text, struct options *o)
{
	for (o->trace_seconds = 0; o->trace_seconds < TRACE_MAX; text++) {
		if (!parse_part(row, &text, ',', true, &o->trace[o->trace_seconds++]))
			return false;
		if (!*text)
			return true;
	}
	return false;
}

/* Parses an optional :FIELD and advances past it. The default is addresses. */
static enum pattern_field take_field(const char **text)
{
	static const char *const FIELDS[] = {":addresses", ":ports", ":macs"};

	for (unsigned i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++)
		if (strncmp(*text, FIELDS[i], strlen(FIELDS[i])) == 0) {
			*text += strlen(FIELDS[i]);
			return (enum pattern_field)i;
		}
	return PATTERN_ADDRESSES;
}

/* N, N:FIELD, N:zipf, N:FIELD:zipf or new. */
static bool store_flows(const struct option_row *row, const char *text, struct options *o)
{
	struct flow_pattern *s = &o->io.pattern;
	double flows;

	s->zipf = false;
	if (strcmp(text, "new") == 0) {
		s->flows = UINT32_MAX;
		s->field = PATTERN_NEW;
		return true;
	}
	if (!parse_whole(row, &text, ':', true, &flows))
		return false;
	s->flows = (uint32_t)flows;
	s->field = take_field(&text);
	s->zipf = strcmp(text, ":zipf") == 0;
	return s->zipf || *text == '\0';
}

/* FIRST:COUNT, at least one, the last one below the maximum. */
static bool store_routes(const struct option_row *row, const char *text, struct options *o)
{
	struct pattern_routes *r = field_of(row, o);
	double first, count;

	if (!parse_whole(row, &text, ':', true, &first) || *text++ != ':' ||
	        !parse_whole(row, &text, '\0', true, &count))
		return false;
	r->first = (uint32_t)first;
	r->count = (uint32_t)count;
	return r->count && first + count <= row->max;
}

static bool store_protocol(const struct option_row *row, const char *text, struct options *o)
{
	(void)row;
	for (unsigned i = 0; i < PROTOCOLS; i++) {
		if (strcmp(text, PROTOCOL_NAMES[i]) == 0) {
			o->protocol = (enum protocol)i;
			return true;
		}
	}
	return false;
}

static bool store_wait(const struct option_row *row, const char *text, struct options *o)
{
	static const char *const NAMES[] = {"poll", "interrupt", "adaptive"};

	(void)row;
	for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
		if (strcmp(text, NAMES[i]) == 0) {
			o->io.wait = (enum io_wait)i;
			return true;
		}
	}
	return false;
}

/* Parses digits as a number within bounds and advances past them. */
static bool take_digits(const char **text, unsigned long least, unsigned long most, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*number = strtoul(*text, &end, 10);
	*text = end;
	return *number >= least && *number <= most;
}

/* NAME or NAME+vlanN */
static bool store_header(const struct option_row *row, const char *text, struct options *o)
{
	static const char *const NAMES[] = {"udp4", "tcp4", "udp6", "tcp6"};
	static const char TAG[] = "+vlan";
	struct frame_header *h = field_of(row, o);
	unsigned long vlan;

	for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
		if (strncmp(text, NAMES[i], strlen(NAMES[i])) != 0)
			continue;
		*h = (struct frame_header){.tcp = i % 2, .ipv6 = i / 2};
		text += strlen(NAMES[i]);
		if (!*text)
			return true;
		if (strncmp(text, TAG, strlen(TAG)) != 0)
			return false;
		text += strlen(TAG);
		if (!take_digits(&text, (unsigned long)row->min, (unsigned long)row->max, &vlan) || *text)
			return false;
		h->vlan = (uint16_t)vlan;
		return true;
	}
	return false;
}

/* PERCENT:PLACES:MARK, the mark a port or a text. */
static bool store_acl(const struct option_row *row, const char *text, struct options *o)
{
	struct acl *acl = field_of(row, o);
	unsigned long percent, places, port;

	if (!take_digits(&text, (unsigned long)row->min, (unsigned long)row->max, &percent) ||
	        *text++ != ':' || !take_digits(&text, 1, ACL_PLACES_MAX, &places) || *text++ != ':' ||
	        percent * places < 100)
		return false;
	*acl = (struct acl){.percent = (uint32_t)percent, .places = (uint32_t)places};
	if (!isdigit((unsigned char)*text)) {
		acl->text = text;
		return *text && strlen(text) <= ACL_TEXT_MAX;
	}
	if (!take_digits(&text, 1, UINT16_MAX - places + 1, &port) || *text)
		return false;
	acl->port = (uint16_t)port;
	return true;
}

bool option_store(const struct option_row *row, const char *text, struct options *o)
{
	static bool (*const STORE[])(const struct option_row *, const char *, struct options *) = {
	        [KIND_FLAG] = store_flag,
	        [KIND_U16] = store_u16,
	        [KIND_U32] = store_u32,
	        [KIND_U64] = store_u64,
	        [KIND_RATE] = store_double,
	        [KIND_SECONDS] = store_double,
	        [KIND_MICROSECONDS] = store_double,
	        [KIND_TEXT] = store_text,
	        [KIND_INTERFACE] = store_interface,
	        [KIND_IO] = store_backend,
	        [KIND_FAULT] = store_fault,
	        [KIND_TRAIN] = store_train,
	        [KIND_SIZES] = store_sizes,
	        [KIND_TRACE] = store_trace,
	        [KIND_FLOWS] = store_flows,
	        [KIND_ROUTES] = store_routes,
	        [KIND_PROTOCOL] = store_protocol,
	        [KIND_WAIT] = store_wait,
	        [KIND_HEADER] = store_header,
	        [KIND_ACL] = store_acl,
	};

	return STORE[row->kind](row, text, o);
}

/* Lists the back ends that can be chosen by name: "'null' or 'NAME'". */
static void list_backends(char *text, size_t size)
{
	size_t length = 0;

	for (const struct io_backend *b = io_backends; b->name && length < size; b++)
		if (b->flags & IO_BY_NAME)
			length += (size_t)snprintf(
			        text + length, size - length, "%s'%s'", length ? " or " : "", b->name);
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
		list_backends(text, size);
		break;
	case KIND_PROTOCOL:
		snprintf(text, size, "udp, tcp, resp, memcached or http");
		break;
	case KIND_WAIT:
		snprintf(text, size, "poll, interrupt or adaptive");
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
		snprintf(text, size, "1 to %u rates from %.15g to %.15g, separated by commas", TRACE_MAX,
		        row->min, row->max);
		break;
	case KIND_FLOWS:
		snprintf(text, size,
		        "a whole number from %.15g to %.15g, followed by :addresses, :ports or :macs, and "
		        ":zipf; or new",
		        row->min, row->max);
		break;
	case KIND_ROUTES:
		snprintf(text, size, "FIRST:COUNT, at least one of routes 0 to %.15g", row->max - 1);
		break;
	case KIND_HEADER:
		snprintf(text, size,
		        "udp4, tcp4, udp6 or tcp6, optionally followed by +vlan%.15g to +vlan%.15g", row->min,
		        row->max);
		break;
	case KIND_ACL:
		snprintf(text, size,
		        "PERCENT:PLACES:MARK, %.15g to %.15g of up to %u places, at least one, and a port or "
		        "a text",
		        row->min, row->max, ACL_PLACES_MAX);
		break;
	case KIND_SIZES:
		snprintf(text, size, "up to %u whole numbers from %.15g to %.15g, separated by commas",
		        PATTERN_CYCLE_MAX, row->min, row->max);
		break;
	case KIND_TEXT:
	case KIND_INTERFACE:
		snprintf(text, size, "a name");
		break;
	default:
		snprintf(text, size, "a whole number from %.15g to %.15g", row->min, row->max);
	}
}
