/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/checks.h"

#include <stdio.h>
#include <string.h>

static uint32_t shortest_packet(const struct options *o)
{
	return pattern_shortest(&o->io.pattern, o->io.packet_size);
}

static bool makes_frames(const struct application *app)
{
	return !app->any_frame && !app->forwards && !app->sockets;
}

static bool check_windows(const struct options *o, struct failure *f)
{
	if (o->app->any_frame || o->duration_s / o->window_s <= FRAME_WINDOW_LAST)
		return true;
	snprintf(f->text, f->size,
	        "--duration %g holds more than %u windows of %g s; choose a longer --window", o->duration_s,
	        FRAME_WINDOW_LAST, o->window_s);
	return false;
}

static bool check_pace(const struct options *o, struct failure *f)
{
	if (o->train_from && o->rate_pps > 0)
		snprintf(f->text, f->size, "--train sends as fast as the port takes it; leave out --rate %g",
		        o->rate_pps);
	else if (o->trace_seconds && o->rate_pps <= 0)
		snprintf(f->text, f->size, "--trace needs --rate, the rate of the warm-up");
	else
		return true;
	return false;
}

static bool check_flows(const struct options *o, struct failure *f)
{
	const struct flow_pattern *p = &o->io.pattern;

	if (!pattern_has_flows(p))
		return true;
	if (!(o->backend->flags & IO_HEADERS))
		snprintf(f->text, f->size, "--flows needs -R IF or dpdk-%.40s: a UDP socket has one flow",
		        o->app->name);
	else if (o->app->round_trip && (p->field == PATTERN_PORTS || p->field == PATTERN_NEW))
		snprintf(f->text, f->size,
		        "--flows of %s has no answers: they come back to one port; vary addresses or macs",
		        p->field == PATTERN_PORTS ? "ports" : "new ones");
	else if (p->field == PATTERN_PORTS && p->flows > PATTERN_PORT_FLOWS_MAX)
		snprintf(f->text, f->size,
		        "--flows %u is more than there are ports; take at most %u, or addresses", p->flows,
		        PATTERN_PORT_FLOWS_MAX);
	else
		return true;
	return false;
}

static bool check_routes(const struct options *o, struct failure *f)
{
	if (!o->io.routes.count)
		return true;
	if (!makes_frames(o->app))
		snprintf(f->text, f->size, "--routes does not apply: %.40s makes no frames", o->app_name);
	else if (!(o->backend->flags & IO_HEADERS))
		snprintf(f->text, f->size,
		        "--routes needs -R IF or dpdk-%.40s: a UDP socket sends to its peer alone",
		        o->app->name);
	else
		return true;
	return false;
}

static bool check_header(const struct options *o, struct failure *f)
{
	const struct frame_header *h = &o->io.ends.header;

	if (frame_is_plain(h))
		return true;
	if (!makes_frames(o->app))
		snprintf(f->text, f->size, "--header does not apply: %.40s makes no frames", o->app_name);
	else if (!(o->backend->flags & IO_HEADERS))
		snprintf(f->text, f->size,
		        "--header needs -R IF or dpdk-%.40s: a UDP socket sends udp4 without a tag",
		        o->app->name);
	else if (shortest_packet(o) < frame_packet_min(h))
		snprintf(f->text, f->size,
		        "packet size %u has no room for that --header: send at least %u bytes",
		        shortest_packet(o), frame_packet_min(h));
	else
		return true;
	return false;
}

/* Whether the application sends or counts the frames that --acl-drops and --peer-acl-drops are about. */
static bool check_acl_role(const struct options *o, const char *name, struct failure *f)
{
	const struct application *app = o->app;

	if (!makes_frames(app) || app->round_trip)
		snprintf(f->text, f->size, "--%s does not apply to %.40s: take send, recv or duplex", name,
		        o->app_name);
	else if (o->io.acl.percent && !app->sends)
		snprintf(f->text, f->size, "%.40s does not send: take --peer-acl-drops", o->app_name);
	else if (o->io.peer_acl.percent && app->sends && !app->duplex)
		snprintf(f->text, f->size, "%.40s counts no frames: take --acl-drops", o->app_name);
	else
		return true;
	return false;
}

static bool check_acl(const struct options *o, struct failure *f)
{
	const char *name = o->io.acl.percent ? "acl-drops" : "peer-acl-drops";
	uint32_t needed = frame_packet_min(&o->io.ends.header);

	if (!o->io.acl.percent && !o->io.peer_acl.percent)
		return true;
	if (!check_acl_role(o, name, f))
		return false;
	if (o->io.acl.text)
		needed += (uint32_t)strlen(o->io.acl.text) + ACL_DIGITS;
	if (!(o->backend->flags & IO_HEADERS) || o->backend->flags & IO_LOCAL)
		snprintf(f->text, f->size, "--%s needs -R IF, -X IF or dpdk-%.40s: a UDP socket has one port",
		        name, o->app->name);
	else if (o->fault.kind != FAULT_NONE)
		snprintf(f->text, f->size,
		        "--fault and --%s both select frames by their numbers: leave one of them out", name);
	else if (shortest_packet(o) < needed)
		snprintf(f->text, f->size,
		        "packet size %u has no room for the text of --acl-drops: send at least %u bytes",
		        shortest_packet(o), needed);
	else
		return true;
	return false;
}

static bool check_queues(const struct options *o, struct failure *f)
{
	if (o->io.queues <= 1 || (o->backend->flags & IO_QUEUES && !o->app->forwards))
		return true;
	snprintf(f->text, f->size,
	        "--queues %u does not apply: %.40s has one queue; take dpdk-send, dpdk-recv, "
	        "dpdk-client, dpdk-server or dpdk-duplex",
	        o->io.queues, o->app_name);
	return false;
}

static bool check_eal(const struct options *o, struct failure *f)
{
	const bool has_eal = o->backend->flags & IO_EAL;

	if (o->io.await_socket && (!has_eal || o->app->forwards))
		snprintf(
		        f->text, f->size, "--await does not apply: %.40s has no virtual device", o->app_name);
	else if (o->io.eal_argc && !has_eal)
		snprintf(f->text, f->size, "EAL options ('%.60s') are for the dpdk- applications only",
		        o->io.eal_argv[0]);
	else
		return true;
	return false;
}

/* Checks that something wakes an endpoint that does not poll. A back end that was not built says so itself.
 */
static bool check_wait(const struct options *o, struct failure *f)
{
	const struct io_ops *ops = o->backend->ops;

	if (o->io.wait == IO_WAIT_POLL)
		return true;
	if (o->io.blocking)
		snprintf(f->text, f->size,
		        "--blocking waits in its calls: leave out --wait, which is for sockets that do not "
		        "block");
	else if (o->app->sockets || o->app->any_frame || (ops && !ops->wait))
		snprintf(f->text, f->size, "--wait does not apply: %.40s with this port can only poll",
		        o->app_name);
	else
		return true;
	return false;
}

/* Checks that there is one back end, and that it and the application suit each other. */
static bool check_backend(const struct options *o, struct failure *f)
{
	const unsigned flags = o->backend->flags;

	if (o->xdp_interface && o->raw_interface)
		snprintf(f->text, f->size,
		        "-R %.60s and -X %.60s are two ways to send: leave one of them out", o->raw_interface,
		        o->xdp_interface);
	else if (o->gso && flags & IO_SOCKET && !(flags & IO_SEGMENTS))
		snprintf(f->text, f->size, "--gso is for UDP sockets: leave it out, or %s",
		        o->raw_interface ? "-R" : "-X");
	else if (o->app->any_frame && !(flags & IO_ANY_FRAME))
		snprintf(f->text, f->size,
		        "%.40s needs -R IF, since only a raw socket carries frames of any kind; or use "
		        "dpdk-%.40s",
		        o->app_name, o->app_name);
	else if (o->app->sockets && strcmp(o->backend->name, "udp") != 0)
		snprintf(f->text, f->size, "%.40s opens its own sockets: leave out dpdk-, -R, -X and --io",
		        o->app_name);
	else
		return !o->backend->fits || o->backend->fits(&o->io, f->text, f->size);
	return false;
}

/* Checks the length of a message, which depends on --protocol. */
static bool check_message(const struct options *o, struct failure *f)
{
	const bool datagram = o->protocol == PROTOCOL_UDP;

	if (!o->app->sockets || !protocol_echoes(o->protocol) ||
	        (o->message >= MESSAGE_MIN && (!datagram || o->message <= DATAGRAM_MAX)))
		return true;
	snprintf(f->text, f->size, "--message %u is no length of an echo: take %u or more, of udp at most %u",
	        o->message, MESSAGE_MIN, DATAGRAM_MAX);
	return false;
}

bool options_fit(const struct options *o, struct failure *f)
{
	static bool (*const CHECKS[])(const struct options *, struct failure *) = {check_windows,
	        check_backend, check_header, check_acl, check_pace, check_flows, check_routes, check_queues,
	        check_eal, check_wait, check_message};

	for (size_t i = 0; i < sizeof(CHECKS) / sizeof(CHECKS[0]); i++)
		if (!CHECKS[i](o, f))
			return false;
	return !o->app->fits || o->app->fits(o, f->text, f->size);
}
