/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "forward/forward.h"
#include "run/run.h"

/* Checks that no interface is named twice: each is one port. */
static bool check_twice(const struct options *o, char *err, size_t err_len)
{
	for (unsigned i = 1; i < o->io.interface_count; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(o->io.interfaces[i], o->io.interfaces[k]) != 0)
				continue;
			snprintf(err, err_len, "interface '%.60s' was given twice: a port has one peer",
			        o->io.interfaces[i]);
			return false;
		}
	}
	return true;
}

static bool fits(const struct options *o, char *err, size_t err_len)
{
	const unsigned n = o->io.interface_count;

	if (o->reorder_every == 1) {
		snprintf(err, err_len,
		        "--reorder 1 leaves no frame to send another one after; take 2 or more");
		return false;
	}
	if (o->backend->flags & IO_EAL)
		return true;
	if (o->backend->flags & IO_LOCAL || n < 2 || n % 2 || n > IO_PORTS_MAX) {
		snprintf(err, err_len,
		        "%.40s needs pairs of interfaces, 2 to %u in all, and %u were given: -R IF -R IF",
		        o->app_name, IO_PORTS_MAX, n);
		return false;
	}
	return check_twice(o, err, err_len);
}

static const struct forward_ops *choose_ops(const struct options *o)
{
	if (!(o->backend->flags & IO_EAL))
		return &forward_raw;
#ifdef HAVE_DPDK
	return &forward_dpdk;
#else
	return NULL;
#endif
}

static void write_mac(struct json *j, const uint8_t mac[6])
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
	        mac[5]);
	json_string(j, "mac", text);
}

/* Writes the keys of every hello line, with the first port's facts, and a list of all ports. */
static void write_hello(struct forward *f)
{
	struct forward_port_facts facts = {0};
	struct json *j = &f->r->json;
	struct io_facts first;

	f->ops->facts(f->io, 0, &facts);
	first = (struct io_facts){.driver = facts.driver, .ring = facts.ring};
	memcpy(first.mac, facts.mac, sizeof(first.mac));
	run_begin_hello(f->r, f->ops->name, &first);
	json_u64(j, "delay_queue", forward_delay_room(f->r->o));
	json_open(j, "ports", '[');
	for (unsigned i = 0; i < f->ports; i++) {
		f->ops->facts(f->io, i, &facts);
		json_open(j, NULL, '{');
		json_u64(j, "port", i);
		json_string(j, "name", facts.name);
		json_string(j, "driver", facts.driver);
		write_mac(j, facts.mac);
		json_u64(j, "ring", facts.ring);
		json_bool(j, "link_up", facts.link_up);
		json_close(j, '}');
	}
	json_close(j, ']');
	run_write_line(f->r);
}

static bool all_links_up(struct forward *f)
{
	bool up = true;

	for (unsigned i = 0; i < f->ports; i++) {
		struct forward_port_facts facts = {0};

		f->ops->facts(f->io, i, &facts);
		up &= facts.link_up;
	}
	return up;
}

static void write_counters(struct forward *f)
{
	struct run *r = f->r;
	struct json *j = &r->json;

	json_begin_line(j, "counters");
	json_u64(j, "monotonic_ns", clock_monotonic_ns());
	forward_counters(f);
	json_end_line(j);
	output_line(&r->output, j->text, j->length);
}

static bool poll_all(struct forward *f, bool receiving)
{
	bool moved = false;
	/* Read before polling, so that the answer includes what was there at the time of the request. */
	const bool asked = control_counters_asked();

	for (unsigned i = 0; i < f->ports; i++)
		moved |= forward_poll(f, &f->way[i], receiving);
	if (asked)
		write_counters(f);
	return moved;
}

/* Sleeps until a frame arrives, or a delayed one is due. Returns false if the forwarder polls. */
static bool rest(struct forward *f)
{
	uint64_t until = f->last + f->r->clock.hz, ns;

	for (unsigned i = 0; i < f->ports; i++) {
		const struct delay *d = &f->way[i].delay;
		uint64_t due = d->in == d->out ? until : d->ring[d->out & d->mask].due;

		until = (int64_t)(due - until) < 0 ? due : until;
	}
	ns = run_rest_ns(f->r, until);
	if (ns)
		f->ops->wait(f->io, ns);
	return ns > 0;
}

static void yield_if_due(struct forward *f, bool moved, uint64_t *yielded_at)
{
	uint32_t every = f->r->o->yield_every;

	if (!every || (moved && (every == 1 || f->moved - *yielded_at < every)))
		return;
	*yielded_at = f->moved;
	f->yields++;
	sched_yield();
}

static uint64_t cycles_of(const struct run *r, double seconds)
{
	return clock_ns_to_cycles(&r->clock, seconds * 1e9);
}

/* Lets delayed frames leave, each at its time. */
static void drain(struct forward *f)
{
	uint64_t deadline = clock_cycles() + cycles_of(f->r, f->r->o->drain_s);
	bool kept = true;

	forward_end(f);
	while (kept && !control_abandon && !f->r->error.call && clock_cycles() < deadline) {
		poll_all(f, false);
		kept = false;
		for (unsigned i = 0; i < f->ports; i++)
			kept |= forward_kept(&f->way[i]) != 0;
	}
}

/* Forwards until the end. Returns whether --duration ended it. */
static bool forward_all(struct forward *f)
{
	struct run *r = f->r;
	uint64_t end = r->start + cycles_of(r, r->o->warmup_s + r->o->duration_s);
	uint64_t yielded_at = 0;

	f->last = r->start;
	while (!control_stopped() && !r->error.call) {
		bool moved = poll_all(f, true);

		if (moved)
			r->moved = f->last;
		if (moved || !rest(f))
			yield_if_due(f, moved, &yielded_at);
		if (r->o->duration_s > 0 && f->last >= end)
			return true;
	}
	return false;
}

static void write_summary(struct forward *f, bool over)
{
	struct json *j = &f->r->json;

	json_begin_line(j, "summary");
	json_string(j, "role", "forwarder");
	json_string(j, "reason", run_reason(f->r, over ? "duration" : NULL));
	forward_counters(f);
	run_finish_summary(f->r);
}

static int forward(struct forward *f)
{
	struct run *r = f->r;
	bool over;

	write_hello(f);
	/* As at any switch, peers come and go, so none is waited for. */
	run_write_ready(r, all_links_up(f), false);
	run_begin_counting(r);
	r->start = clock_cycles();
	over = forward_all(f);
	drain(f);
	write_summary(f, over);
	return r->error.call ? EXIT_IO : EXIT_OK;
}

static int loop(struct run *r)
{
	const struct forward_ops *ops = choose_ops(r->o);
	char err[256] = "built without DPDK; install libdpdk-dev and build again";
	uint32_t kept = forward_delay_room(r->o) + 1; /* one frame is held for its successor */
	struct forward_io *io = NULL;
	struct forward f;
	int code = EXIT_SETUP;

	if (ops)
		io = ops->open(&r->o->io, kept, err, sizeof(err));
	if (!io) {
		fprintf(stderr, "icbench-workload %s: %s\n", r->o->app_name, err);
		return EXIT_SETUP;
	}
	if (forward_init(&f, r, ops, io))
		code = forward(&f);
	else
		fprintf(stderr, "icbench-workload %s: out of memory\n", r->o->app_name);
	forward_free(&f);
	ops->close(io);
	return code;
}

const struct application app_forward = {.name = "forward", .forwards = true, .fits = fits, .loop = loop};
