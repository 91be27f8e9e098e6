/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "option/checks.h"
#include "option/table.h"

#define DPDK_PREFIX "dpdk-"

void options_app_names(const struct application *const apps[], char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; apps[i] && length < size; i++)
		length +=
		        (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "", apps[i]->name);
}

static bool has_prefix(const char *name)
{
	return strncmp(name, DPDK_PREFIX, strlen(DPDK_PREFIX)) == 0;
}

static bool find_app(const struct application *const apps[], const char *name, struct options *o)
{
	const char *bare = has_prefix(name) ? name + strlen(DPDK_PREFIX) : name;

	for (size_t i = 0; apps[i]; i++) {
		if (strcmp(bare, apps[i]->name) == 0) {
			o->app = apps[i];
			o->app_name = name;
			if (o->app->any_frame || o->app->forwards)
				o->io.packet_size = FRAME_PACKET_STANDARD;
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

/* Parses --name, --name=value or --name value. Returns how many further arguments were used, or -1. */
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

/* Parses -x, -xVALUE, -x VALUE, or flags together: -mB. Returns as parse_long(). */
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

/* Stores the FILE of an application that has one. */
static bool store_file(struct options *o, const char *text, struct failure *f)
{
	o->file = text;
	if (!*text)
		snprintf(f->text, f->size, "FILE must be a name, not ''");
	return *text != '\0';
}

static bool store_server(struct options *o, unsigned position, const char *text, struct failure *f)
{
	if (position > 0)
		snprintf(f->text, f->size, "unexpected argument '%.60s' after the server's address", text);
	else if (inet_pton(AF_INET, text, &o->io.ends.remote_ip) == 1)
		return true;
	else
		snprintf(f->text, f->size, "SERVER_IP must be an IPv4 address such as 10.0.0.1, not '%.60s'",
		        text);
	return false;
}

static bool store_address(struct options *o, unsigned position, const char *text, struct failure *f)
{
	struct frame_ends *ends = &o->io.ends;
	const struct {
		const char *name;
		struct in_addr *ip;
		uint8_t *mac;
	} addresses[] = {{"LOCAL_IP", &ends->local_ip, NULL}, {"LOCAL_MAC", NULL, ends->local_mac},
	        {"REMOTE_IP", &ends->remote_ip, NULL}, {"REMOTE_MAC", NULL, ends->remote_mac}};
	uint8_t *mac;

	if (position >= sizeof(addresses) / sizeof(addresses[0])) {
		snprintf(f->text, f->size, "unexpected argument '%.60s' after the four addresses", text);
		return false;
	}
	mac = addresses[position].mac;
	if (mac ? parse_mac(text, mac) : inet_pton(AF_INET, text, addresses[position].ip) == 1)
		return true;
	snprintf(f->text, f->size, "%s must be %s, not '%.60s'", addresses[position].name,
	        mac ? "a MAC address such as 02:00:00:00:00:01" : "an IPv4 address such as 10.0.0.1", text);
	return false;
}

/* Stores an argument that is no option: FILE if the application has one, then its addresses. */
static bool store_positional(struct options *o, unsigned position, const char *text, struct failure *f)
{
	if (o->app->any_frame && !o->file)
		return store_file(o, text, f);
	if (o->app->forwards) {
		snprintf(f->text, f->size, "unexpected argument '%.60s': %.40s has no addresses", text,
		        o->app_name);
		return false;
	}
	if (o->app->sockets)
		return store_server(o, position, text, f);
	return store_address(o, position, text, f);
}

/* Checks that FILE and addresses are complete. Replay and capture work without addresses; a forwarder has
 * none. */
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

static bool is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Returns the name of the back end: that of --io, or the one that the prefix dpdk- or an interface
 * implies. */
static const char *backend_name(const struct options *o)
{
	if (o->io_name)
		return o->io_name;
	if (has_prefix(o->app_name))
		return "dpdk";
	if (o->raw_interface)
		return "raw";
	return o->xdp_interface ? "xdp" : "udp";
}

/* Chooses the back end, and completes its config from the application and the other options. */
static void complete_io(struct options *o)
{
	const struct application *app = o->app;
	const unsigned wanted = (o->gso ? IO_SEGMENTS : 0u) | (app->any_frame ? IO_ANY_FRAME : 0u) |
	                        (o->io.queues > 1 ? IO_QUEUES : 0u);

	o->backend = io_backend_find(backend_name(o), wanted);
	o->io.interface = o->raw_interface ? o->raw_interface : o->xdp_interface;
	o->io.role = (struct io_role){
	        .sends = app->sends,
	        .receives = !app->sends || app->round_trip || app->duplex || o->capture_file,
	        .round_trip = app->round_trip,
	        .duplex = app->duplex,
	        .forwards = app->forwards,
	        .any_frame = app->any_frame,
	};
	o->io.schedule = (struct io_schedule){o->warmup_s, o->window_s, o->duration_s, o->count};
}

/* Parses one argument. Returns how many further ones were used, or -1. */
static int parse_argument(struct options *o, unsigned *positions, const char *argument, const char *following,
        struct failure *f)
{
	if (strncmp(argument, "--", 2) == 0)
		return parse_long(o, argument, following, f);
	if (argument[0] == '-' && argument[1])
		return parse_letters(o, argument, following, f);
	if (!store_positional(o, *positions - (o->file != NULL), argument, f))
		return -1;
	++*positions;
	return 0;
}

static enum options_outcome parse_arguments(struct options *o, int argc, char **argv, struct failure *f)
{
	unsigned positions = 0;

	for (int i = 0; i < argc; i++) {
		int used;

		if (strcmp(argv[i], "--") == 0) {
			o->io.eal_argc = argc - i - 1;
			o->io.eal_argv = argv + i + 1;
			break;
		}
		if (is_help(argv[i]))
			return OPTIONS_HELP;
		used = parse_argument(o, &positions, argv[i], i + 1 < argc ? argv[i + 1] : NULL, f);
		if (used < 0)
			return OPTIONS_BAD;
		i += used;
	}
	if (!check_positions(o, positions, f))
		return OPTIONS_BAD;
	complete_io(o);
	return options_fit(o, f) ? OPTIONS_RUN : OPTIONS_BAD;
}

/* Returns what the first argument requests if it names no application with arguments; OPTIONS_BAD for
 * nothing. */
static enum options_outcome find_request(const char *argument)
{
	static const struct {
		const char *argument;
		enum options_outcome outcome;
	} REQUESTS[] = {{"--version", OPTIONS_VERSION}, {"--options", OPTIONS_LIST}, {"--help", OPTIONS_HELP},
	        {"-h", OPTIONS_HELP}, {"pause", OPTIONS_PAUSE}, {"distance", OPTIONS_DISTANCE},
	        {"guest", OPTIONS_GUEST}, {"relay", OPTIONS_RELAY}};

	for (size_t i = 0; i < sizeof(REQUESTS) / sizeof(REQUESTS[0]); i++)
		if (strcmp(argument, REQUESTS[i].argument) == 0)
			return REQUESTS[i].outcome;
	return OPTIONS_BAD;
}

enum options_outcome options_parse(struct options *o, const struct application *const apps[], int argc,
        char **argv, char *err, size_t err_len)
{
	struct failure f = {err, err_len};
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *called = argc ? (slash ? slash + 1 : argv[0]) : "";
	enum options_outcome outcome;
	char names[128];

	*o = OPTION_DEFAULTS;
	if (find_app(apps, called, o)) /* called by a link of that name */
		return parse_arguments(o, argc - 1, argv + 1, &f);
	options_app_names(apps, names, sizeof(names));
	if (argc < 2) {
		snprintf(err, err_len,
		        "an application is missing: %s, one of these with dpdk-, pause or distance", names);
		return OPTIONS_BAD;
	}
	outcome = find_request(argv[1]);
	if (outcome != OPTIONS_BAD)
		return outcome;
	if (find_app(apps, argv[1], o))
		return parse_arguments(o, argc - 2, argv + 2, &f);
	snprintf(err, err_len,
	        "unknown application '%.60s': choose %s, one of these with dpdk-, pause or distance", argv[1],
	        names);
	return OPTIONS_BAD;
}
