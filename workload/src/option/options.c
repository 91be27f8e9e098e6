/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "option/denied.h"
#include "option/header.h"
#include "option/table.h"

/* An echo's message has a number and something to compare; a datagram fits into IPv4. */
#define MESSAGE_MIN 16u
#define DATAGRAM_MAX 65507u

/* Room for one sentence, with culprits cut to a readable length by the formats' %.60s. */
struct failure {
	char *text;
	size_t size;
};

void options_app_names(const struct application *const apps[], char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; apps[i] && length < size; i++)
		length +=
		        (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "", apps[i]->name);
}

static bool find_app(const struct application *const apps[], const char *name, struct options *o)
{
	const char *bare = strncmp(name, "dpdk-", 5) == 0 ? name + 5 : name;

	for (size_t i = 0; apps[i]; i++) {
		if (strcmp(bare, apps[i]->name) == 0) {
			o->app = apps[i];
			o->app_name = name;
			o->io = bare == name ? IO_UDP : IO_DPDK;
			if (o->app->any_frame || o->app->forwards)
				o->packet_size = OPTIONS_LARGEST_FRAME;
			return true;
		}
	}
	return false;
}

static bool set_option(const struct option_row *row, const char *typed, const char *value, struct options *o,
        struct failure *f)
{
	char expected[128];

	if (row->kind == KIND_FLAG)
		return option_store(row, "", o);
	if (!value) {
		option_expectation(row, expected, sizeof(expected));
		snprintf(f->text, f->size, "%.60s needs a value: %s", typed, expected);
		return false;
	}
	if (option_store(row, value, o))
		return true;
	option_expectation(row, expected, sizeof(expected));
	snprintf(f->text, f->size, "%.60s takes %s, not '%.60s'", typed, expected, value);
	return false;
}

/* --name, --name=value, --name value. Returns how many further arguments were used, or -1. */
static int parse_long(struct options *o, const char *argument, const char *following, struct failure *f)
{
	size_t length = strcspn(argument + 2, "=");
	const char *value = argument[2 + length] ? argument + 3 + length : NULL;
	const struct option_row *row = option_by_name(argument + 2, length);

	if (!row) {
		snprintf(f->text, f->size, "unknown option '%.60s'; --help lists all", argument);
		return -1;
	}
	if (row->kind == KIND_FLAG && value) {
		snprintf(f->text, f->size, "--%s takes no value, but '%.60s' was given", row->name, value);
		return -1;
	}
	if (row->kind == KIND_FLAG || value)
		return set_option(row, argument, value, o, f) ? 0 : -1;
	return set_option(row, argument, following, o, f) ? 1 : -1;
}

/* -x, -xVALUE, -x VALUE, and flags together: -mB. */
static int parse_letters(struct options *o, const char *argument, const char *following, struct failure *f)
{
	for (const char *letter = argument + 1; *letter; letter++) {
		const struct option_row *row = option_by_letter(*letter);
		char typed[3] = {'-', *letter, 0};

		if (!row) {
			snprintf(f->text, f->size, "unknown option '-%c' in '%.60s'; --help lists all",
			        *letter, argument);
			return -1;
		}
		if (row->kind == KIND_FLAG)
			set_option(row, typed, NULL, o, f);
		else if (letter[1])
			return set_option(row, typed, letter + 1, o, f) ? 0 : -1;
		else
			return set_option(row, typed, following, o, f) ? 1 : -1;
	}
	return 0;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
	for (int i = 0; i < 6; i++, text += 3) {
		char pair[3] = {text[0], text[0] ? text[1] : 0, 0};

		if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
			return false;
		if (text[2] != (i < 5 ? ':' : '\0'))
			return false;
		mac[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return true;
}

/* One of the arguments that have no name: FILE where the application has one, then four addresses. */
static bool store_address(struct options *o, unsigned position, const char *text, struct failure *f)
{
	static const char *const NAMES[] = {"LOCAL_IP", "LOCAL_MAC", "REMOTE_IP", "REMOTE_MAC"};
	bool ok = false;

	if (o->app->any_frame && !o->file) {
		o->file = text;
		ok = *text != '\0';
		if (!ok)
			snprintf(f->text, f->size, "FILE must be a name, not ''");
		return ok;
	}

	if (o->app->forwards) {
		snprintf(f->text, f->size, "unexpected argument '%.60s': %.40s has no addresses", text,
		        o->app_name);
		return false;
	}
	if (o->app->sockets && position > 0) {
		snprintf(f->text, f->size, "unexpected argument '%.60s' behind the server's address", text);
		return false;
	}
	switch (position) {
	case 0:
		ok = inet_pton(AF_INET, text, o->app->sockets ? &o->ends.remote_ip : &o->ends.local_ip) == 1;
		break;
	case 1:
		ok = parse_mac(text, o->ends.local_mac);
		break;
	case 2:
		ok = inet_pton(AF_INET, text, &o->ends.remote_ip) == 1;
		break;
	case 3:
		ok = parse_mac(text, o->ends.remote_mac);
		break;
	default:
		snprintf(f->text, f->size, "unexpected argument '%.60s' behind the four addresses", text);
		return false;
	}
	if (!ok)
		snprintf(f->text, f->size, "%s must be %s, not '%.60s'",
		        o->app->sockets ? "SERVER_IP" : NAMES[position],
		        position % 2 ? "a MAC address such as 02:00:00:00:00:01"
		                     : "an IPv4 address such as 10.0.0.1",
		        text);
	return ok;
}

/* What replay and capture need of their options. */
static bool check_any_frame(const struct options *o, struct failure *f)
{
	if (o->io != IO_RAW && o->io != IO_DPDK)
		snprintf(f->text, f->size,
		        "%.40s needs -R IF, since only a raw socket carries frames of any kind; or use "
		        "dpdk-%.40s",
		        o->app_name, o->app_name);
	else if (o->timing && o->rate_pps > 0)
		snprintf(f->text, f->size,
		        "--timing keeps the frames' own times, so that -r has no place: leave "
		        "one of them out");
	else if (o->step && !o->supervised)
		snprintf(f->text, f->size, "--step waits for lines 'go' on stdin: add --supervised");
	else if (o->capture_file && o->app->sends && strcmp(o->capture_file, o->file) == 0)
		snprintf(f->text, f->size,
		        "--capture %.60s would overwrite the file to be sent: name another", o->capture_file);
	else
		return true;
	return false;
}

/* FILE where the application has one; all four addresses, which replay and capture can do without, and a
 * forwarder has not. */
static bool check_positions(const struct options *o, unsigned positions, struct failure *f)
{
	unsigned addresses = positions - (o->file != NULL);

	if (o->app->any_frame && !o->file)
		snprintf(f->text, f->size, "%.40s needs a FILE in pcap format", o->app_name);
	else if (o->app->sockets && !addresses)
		snprintf(f->text, f->size, "%.40s needs the server's IPv4 address", o->app_name);
	else if (addresses < 4 && !o->app->sockets && !o->app->forwards && !(o->app->any_frame && !addresses))
		snprintf(f->text, f->size,
		        "%.40s needs LOCAL_IP LOCAL_MAC REMOTE_IP REMOTE_MAC, and %u of them were given",
		        o->app_name, addresses);
	else
		return true;
	return false;
}

/* What a forwarder needs of its options. */
static bool check_forwarder(const struct options *o, struct failure *f)
{
	if (o->reorder_every == 1) {
		snprintf(f->text, f->size,
		        "--reorder 1 leaves no frame that another could be sent behind; take 2 or more");
		return false;
	}
	if (o->io == IO_DPDK)
		return true;
	if (o->io == IO_NULL || o->raw_interface_count < 2 || o->raw_interface_count % 2 ||
	        o->raw_interface_count > FORWARD_PORTS_MAX) {
		snprintf(f->text, f->size,
		        "%.40s needs pairs of interfaces, 2 to %u in all, and %u were given: -R IF -R IF",
		        o->app_name, FORWARD_PORTS_MAX, o->raw_interface_count);
		return false;
	}
	for (unsigned i = 1; i < o->raw_interface_count; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(o->raw_interfaces[i], o->raw_interfaces[k]) != 0)
				continue;
			snprintf(f->text, f->size, "interface '%.60s' was given twice: a port has one peer",
			        o->raw_interfaces[i]);
			return false;
		}
	}
	return true;
}

/* What ask and echo need of their options. */
static bool check_sockets(const struct options *o, struct failure *f)
{
	if (o->io != IO_UDP)
		snprintf(f->text, f->size, "%.40s has sockets of its own: leave out dpdk-, -R, -X and --io",
		        o->app_name);
	else if (o->protocol <= PROTOCOL_TCP &&
	         (o->message < MESSAGE_MIN || (o->protocol == PROTOCOL_UDP && o->message > DATAGRAM_MAX)))
		snprintf(f->text, f->size,
		        "--message %u is no length of an echo: take %u or more, of udp at most %u",
		        o->message, MESSAGE_MIN, DATAGRAM_MAX);
	else if (o->protocol > PROTOCOL_TCP && !o->app->sends)
		snprintf(f->text, f->size, "%.40s answers udp and tcp: %s needs a server of its own",
		        o->app_name, PROTOCOL_NAMES[o->protocol]);
	else if (!o->duration_s && o->app->sends)
		snprintf(f->text, f->size, "%.40s needs a --duration", o->app_name);
	else
		return true;
	return false;
}

/* What no single row can say. */
static bool check_together(const struct options *o, struct failure *f)
{
	if ((o->app->any_frame && !check_any_frame(o, f)) || !header_fits(o, f->text, f->size) ||
	        !denied_fits(o, f->text, f->size))
		return false;
	if (!o->app->any_frame && o->duration_s / o->window_s > FRAME_WINDOW_LAST)
		snprintf(f->text, f->size,
		        "--duration %g holds more than %u windows of %g s; choose a longer --window",
		        o->duration_s, FRAME_WINDOW_LAST, o->window_s);
	else if (o->io == IO_DPDK && o->burst > o->ring)
		snprintf(f->text, f->size,
		        "--burst %u is larger than the ring of %u descriptors; choose a larger --ring",
		        o->burst, o->ring);
	else if (o->xdp_interface && o->raw_interface)
		snprintf(f->text, f->size,
		        "-R %.60s and -X %.60s are two ways to send: leave one of them out", o->raw_interface,
		        o->xdp_interface);
	else if (o->gso && (o->io == IO_RAW || o->io == IO_XDP))
		snprintf(f->text, f->size, "--gso is for UDP sockets: leave it out, or %s",
		        o->io == IO_RAW ? "-R" : "-X");
	else if (o->app->duplex && o->blocking)
		snprintf(f->text, f->size, "%.40s sends and receives in one loop: leave out --blocking",
		        o->app_name);
	else if (o->train_from && o->rate_pps > 0)
		snprintf(f->text, f->size, "--train sends as fast as the port takes it; leave out --rate %g",
		        o->rate_pps);
	else if (o->trace_seconds && o->rate_pps <= 0)
		snprintf(f->text, f->size, "--trace needs --rate, the rate of the warm-up");
	else if (shape_has_flows(&o->shape) && o->io == IO_UDP)
		snprintf(f->text, f->size, "--flows needs -R IF or dpdk-%.40s: a UDP socket has one flow",
		        o->app->name);
	else if (shape_has_flows(&o->shape) && o->app->round_trip &&
	         (o->shape.field == SHAPE_PORTS || o->shape.field == SHAPE_NEW))
		snprintf(f->text, f->size,
		        "--flows of %s has no answers: they come back to one port; vary addresses or macs",
		        o->shape.field == SHAPE_PORTS ? "ports" : "new ones");
	else if (o->shape.field == SHAPE_PORTS && o->shape.flows > SHAPE_PORT_FLOWS_MAX)
		snprintf(f->text, f->size,
		        "--flows %u is more than there are ports; take at most %u, or addresses",
		        o->shape.flows, SHAPE_PORT_FLOWS_MAX);
	else if (o->queues > 1 && (o->io != IO_DPDK || o->app->forwards || o->app->any_frame))
		snprintf(f->text, f->size,
		        "--queues %u has no place: %.40s has one queue; take dpdk-send, dpdk-recv, "
		        "dpdk-client, dpdk-server or dpdk-duplex",
		        o->queues, o->app_name);
	else if (o->await_socket && (o->io != IO_DPDK || o->app->forwards))
		snprintf(f->text, f->size, "--await has no place: %.40s has no virtual device to wait with",
		        o->app_name);
	else if (o->eal_argc && o->io != IO_DPDK)
		snprintf(f->text, f->size, "EAL options ('%.60s') are for the dpdk- applications only",
		        o->eal_argv[0]);
	else
		return (!o->app->forwards || check_forwarder(o, f)) &&
		       (!o->app->sockets || check_sockets(o, f));
	return false;
}

static enum options_outcome parse_arguments(struct options *o, int argc, char **argv, struct failure *f)
{
	unsigned positions = 0;

	for (int i = 0; i < argc; i++) {
		const char *following = i + 1 < argc ? argv[i + 1] : NULL;
		int used = 0;

		if (strcmp(argv[i], "--") == 0) {
			o->eal_argc = argc - i - 1;
			o->eal_argv = argv + i + 1;
			break;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return OPTIONS_HELP;
		if (strncmp(argv[i], "--", 2) == 0)
			used = parse_long(o, argv[i], following, f);
		else if (argv[i][0] == '-' && argv[i][1])
			used = parse_letters(o, argv[i], following, f);
		else if (!store_address(o, positions - (o->file != NULL), argv[i], f))
			return OPTIONS_BAD;
		else
			positions++;
		if (used < 0)
			return OPTIONS_BAD;
		i += used;
	}
	if (!check_positions(o, positions, f))
		return OPTIONS_BAD;
	if (o->io == IO_UDP && o->raw_interface)
		o->io = IO_RAW;
	else if (o->io == IO_UDP && o->xdp_interface)
		o->io = IO_XDP;
	return check_together(o, f) ? OPTIONS_RUN : OPTIONS_BAD;
}

enum options_outcome options_parse(struct options *o, const struct application *const apps[], int argc,
        char **argv, char *err, size_t err_len)
{
	struct failure f = {err, err_len};
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *called = argc ? (slash ? slash + 1 : argv[0]) : "";
	char names[128];
	bool linked;

	*o = OPTION_DEFAULTS;
	options_app_names(apps, names, sizeof(names));
	linked = find_app(apps, called, o);
	if (!linked) {
		if (argc < 2) {
			snprintf(err, err_len,
			        "an application is missing: %s, a dpdk- twin, pause or distance", names);
			return OPTIONS_BAD;
		}
		if (strcmp(argv[1], "--version") == 0)
			return OPTIONS_VERSION;
		if (strcmp(argv[1], "--options") == 0)
			return OPTIONS_LIST;
		if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
			return OPTIONS_HELP;
		if (strcmp(argv[1], "pause") == 0)
			return OPTIONS_PAUSE;
		if (strcmp(argv[1], "distance") == 0)
			return OPTIONS_DISTANCE;
		if (!find_app(apps, argv[1], o)) {
			snprintf(err, err_len,
			        "unknown application '%.60s': choose %s, a dpdk- twin, pause or distance",
			        argv[1], names);
			return OPTIONS_BAD;
		}
	}
	return parse_arguments(o, argc - (linked ? 1 : 2), argv + (linked ? 1 : 2), &f);
}
