/* SPDX-License-Identifier: BSD-3-Clause */
#include "forward/forward.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/frame.h"
#include "run/run.h"

#define DELAY_ROOM_MPPS 10
#define DELAY_ROOM_MIN 1024u
#define DELAY_ROOM_MAX 65536u
/* A burst with every frame duplicated, and one held frame. */
#define FRAMES_MAX (2 * (IO_BURST_MAX + 1))

uint32_t forward_delay_room(const struct options *o)
{
	double frames = o->delay_us * DELAY_ROOM_MPPS;

	if (o->delay_us <= 0)
		return 0;
	if (o->delay_queue)
		return o->delay_queue;
	return frames < DELAY_ROOM_MIN   ? DELAY_ROOM_MIN
	       : frames > DELAY_ROOM_MAX ? DELAY_ROOM_MAX
	                                 : (uint32_t)frames;
}

bool forward_init(struct forward *f, struct run *r, const struct forward_ops *ops, struct forward_io *io)
{
	const struct options *o = r->o;

	*f = (struct forward){.r = r, .ops = ops, .io = io, .ports = ops->ports(io)};
	f->match = frame_match(&o->io.ends.header, o->io.ends.udp_port);
	/* Rounded up: never early. */
	f->delay = (uint64_t)ceil(o->delay_us * 1e3 / r->clock.ns_per_cycle);
	if (o->cost_cycles)
		cost_init(&f->cost, o->cost_cycles);
	for (unsigned i = 0; i < f->ports; i++) {
		struct forward_way *w = &f->way[i];

		w->from = i;
		w->to = i ^ 1;
		if (!o->only || (o->only - 1) == i % 2)
			impair_init(&w->impair, o->drop_every, o->reorder_every, o->duplicate_every);
		if (f->delay && !delay_init(&w->delay, forward_delay_room(o)))
			return false;
	}
	f->last = clock_cycles();
	return true;
}

void forward_free(struct forward *f)
{
	for (unsigned i = 0; i < f->ports; i++) {
		void *frames[IO_BURST_MAX];
		void *held = impair_take_held(&f->way[i].impair);
		unsigned n;

		if (held)
			f->ops->release(f->io, &held, 1);
		while (f->way[i].delay.ring && (n = delay_flush(&f->way[i].delay, frames, IO_BURST_MAX)))
			f->ops->release(f->io, frames, n);
		delay_free(&f->way[i].delay);
	}
}

static enum impair_kind kind_of(struct forward *f, void *frame, uint16_t *stream)
{
	uint32_t length;
	uint8_t *l2 = f->ops->bytes(frame, &length);

	return impair_classify(l2, length, &f->match, stream);
}

static bool is_control(struct forward *f, void *frame)
{
	uint16_t stream;

	return kind_of(f, frame, &stream) > IMPAIR_FIRST;
}

static void find_control(struct forward *f, void *frames[], unsigned n, bool control[])
{
	for (unsigned i = 0; i < n; i++)
		control[i] = is_control(f, frames[i]);
}

/* Offers frames to the port and counts the control frames that it takes. */
static int offer_counted(struct forward *f, struct forward_way *w, void *frames[], unsigned n)
{
	bool control[FRAMES_MAX];
	int taken;

	/* Before they are sent, because a port may release a frame that it takes. */
	find_control(f, frames, n, control);
	taken = f->ops->tx(f->io, w->to, frames, n);
	for (unsigned i = 0; i < n && (int)i < taken; i++)
		w->control_sent += control[i];
	return taken;
}

static void transmit(struct forward *f, struct forward_way *w, void *frames[], unsigned n)
{
	int taken = f->r->o->accounts ? offer_counted(f, w, frames, n) : f->ops->tx(f->io, w->to, frames, n);

	if (taken < 0) {
		run_failed(f->r, "send", errno);
		taken = 0;
	}
	w->sent += (unsigned)taken;
	w->refused += n - (unsigned)taken;
}

/* Sends frames to the port or into the delay line. */
static void pass(struct forward *f, struct forward_way *w, void *frames[], unsigned n, uint64_t arrived)
{
	unsigned kept;

	if (!f->delay) {
		transmit(f, w, frames, n);
		return;
	}
	kept = delay_push(&w->delay, frames, n, arrived + f->delay);
	if (kept < n) {
		w->overflow += n - kept;
		f->ops->release(f->io, frames + kept, n - kept);
	}
}

static void swap_addresses(const struct forward *f, void *const frames[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t length;
		uint8_t *l2 = f->ops->bytes(frames[i], &length);
		uint8_t source[6];

		if (length < FRAME_ETH_BYTES)
			continue;
		memcpy(source, l2 + 6, sizeof(source));
		memcpy(l2 + 6, l2, sizeof(source));
		memcpy(l2, source, sizeof(source));
	}
}

static void impair(
        struct forward *f, struct forward_way *w, void *const frames[], unsigned n, uint64_t arrived)
{
	struct forward_way *back = &f->way[w->to];
	struct impair_outcome out;
	uint8_t kinds[IO_BURST_MAX];
	uint16_t stream, ended = 0;

	for (unsigned i = 0; i < n; i++) {
		kinds[i] = (uint8_t)kind_of(f, frames[i], &stream);
		if (kinds[i] == IMPAIR_FIRST)
			w->stream = stream;
		else if (kinds[i] == IMPAIR_END_MARK)
			ended = stream;
	}
	impair_burst(&w->impair, frames, kinds, n, &out);
	w->control += out.control;
	for (unsigned i = 0; i < out.duplicated; i++)
		f->ops->share(out.duplicate[i]);
	f->ops->release(f->io, out.drop, out.dropped);
	if (out.passed)
		pass(f, w, out.pass, out.passed, arrived);
	/* When a stream ends, its answers end as well. Frames in the other direction may instead be an
	 * independent stream. */
	if (out.end_mark && (!back->stream || back->stream == ended))
		impair_restart(&back->impair);
}

static unsigned receive(struct forward *f, struct forward_way *w)
{
	void *frames[IO_BURST_MAX];
	int got = f->ops->rx(f->io, w->from, frames, f->r->o->io.burst);
	uint64_t arrived;
	unsigned n;

	f->polls++;
	if (got <= 0) {
		f->empty_polls++;
		if (got < 0)
			run_failed(f->r, "receive", errno);
		return 0;
	}
	n = (unsigned)got;
	arrived = f->delay ? clock_cycles() : 0;
	w->received += n;
	if (f->cost.cycles)
		cost_spend(&f->cost, n);
	if (f->r->o->swap)
		swap_addresses(f, frames, n);
	if (impair_acts(&w->impair)) {
		impair(f, w, frames, n, arrived);
		return n;
	}
	for (unsigned i = 0; f->r->o->accounts && i < n; i++)
		w->control += is_control(f, frames[i]);
	pass(f, w, frames, n, arrived);
	return n;
}

/* Releases as many frames as a burst can have added, so that the line does not grow needlessly. */
static unsigned release_due(struct forward *f, struct forward_way *w)
{
	void *frames[FRAMES_MAX];
	unsigned n = delay_pop(&w->delay, clock_cycles(), frames, 2 * (f->r->o->io.burst + 1));

	if (n)
		transmit(f, w, frames, n);
	return n;
}

bool forward_poll(struct forward *f, struct forward_way *w, bool receiving)
{
	unsigned moved = receiving ? receive(f, w) : 0;
	uint64_t now;

	if (f->delay)
		moved += release_due(f, w);
	now = clock_cycles();
	if (moved)
		f->busy += now - f->last;
	else
		f->idle += now - f->last;
	f->last = now;
	f->moved += moved;
	return moved;
}

void forward_end(struct forward *f)
{
	for (unsigned i = 0; i < f->ports; i++) {
		struct forward_way *w = &f->way[i];
		void *held = impair_take_held(&w->impair);

		if (held)
			pass(f, w, &held, 1, clock_cycles());
	}
}

static void port_counters(struct forward *f, unsigned port)
{
	const struct forward_way *in = &f->way[port], *out = &f->way[in->to];
	struct json *j = &f->r->json;

	json_open(j, NULL, '{');
	json_u64(j, "port", port);
	json_u64(j, "rx", in->received);
	json_u64(j, "missed", f->ops->missed(f->io, port));
	if (f->r->o->accounts || impair_acts(&in->impair))
		json_u64(j, "control", in->control);
	else
		json_null(j, "control");
	json_u64(j, "dropped", in->impair.dropped);
	json_u64(j, "duplicated", in->impair.duplicated);
	json_u64(j, "reordered", in->impair.reordered);
	json_u64(j, "overflow", in->overflow);
	json_u64(j, "kept", forward_kept(in));
	json_u64(j, "tx", out->sent);
	json_u64(j, "refused", out->refused);
	if (f->r->o->accounts)
		json_u64(j, "tx_control", out->control_sent);
	else
		json_null(j, "tx_control");
	json_close(j, '}');
}

void forward_counters(struct forward *f)
{
	struct json *j = &f->r->json;
	uint64_t late = 0;

	for (unsigned i = 0; i < f->ports; i++)
		late = f->way[i].delay.late_max > late ? f->way[i].delay.late_max : late;
	json_u64(j, "busy_cycles", f->busy);
	json_u64(j, "idle_cycles", f->idle);
	json_u64(j, "polls", f->polls);
	json_u64(j, "empty_polls", f->empty_polls);
	json_u64(j, "yields", f->yields);
	json_u64(j, "delay_late_max_ns", clock_cycles_to_ns(&f->r->clock, late));
	json_open(j, "ports", '[');
	for (unsigned i = 0; i < f->ports; i++)
		port_counters(f, i);
	json_close(j, ']');
}
