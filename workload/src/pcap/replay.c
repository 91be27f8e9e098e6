/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/replay.h"

#include <errno.h>
#include <net/ethernet.h>
#include <sched.h>
#include <string.h>

#include "base/frame.h"

uint32_t replay_packet_size(const struct pcap_frame *f)
{
	bool tagged = f->bytes[12] == ETHERTYPE_VLAN >> 8 && f->bytes[13] == (ETHERTYPE_VLAN & 0xff);

	return f->length + FRAME_FCS_BYTES - (tagged ? FRAME_TAGS_BYTES / 2 : 0);
}

const struct pcap_frame *replay_largest(const struct pcap *p)
{
	const struct pcap_frame *largest = &p->frames[0];

	for (size_t i = 1; i < p->count; i++)
		if (replay_packet_size(&p->frames[i]) > replay_packet_size(largest))
			largest = &p->frames[i];
	return largest;
}

void replay_start(struct replay *p, struct run *r, const struct pcap *file, uint64_t at)
{
	p->r = r;
	p->file = file;
	p->next = 0;
	p->start = at;
	p->offered = 0;
	p->done = false;
	p->frame_cycles = r->o->rate_pps > 0 ? (long double)r->clock.hz / (long double)r->o->rate_pps : 0;
}

/* Returns when a frame is due with --timing. A time that goes backwards means at once. */
static uint64_t own_time(const struct replay *p, size_t i)
{
	uint64_t first = p->file->frames[0].time_ns, time = p->file->frames[i].time_ns;

	return p->start + (time > first ? clock_ns_to_cycles(&p->r->clock, (double)(time - first)) : 0);
}

/* Returns how many frames, at most a burst, are due at `now`, and since when the first one is. */
static unsigned due_by_own_times(const struct replay *p, uint64_t now, unsigned most, uint64_t *since)
{
	unsigned n = 0;

	*since = own_time(p, p->next);
	while (n < most && (int64_t)(now - own_time(p, p->next + n)) >= 0)
		n++;
	return n;
}

/* Returns the size of the next burst, limited by the end of the file and --count. */
static unsigned burst_size(const struct replay *p)
{
	const struct options *o = p->r->o;
	uint64_t left = p->file->count - p->next;

	if (o->count && o->count - p->scheduled < left)
		left = o->count - p->scheduled;
	return left < o->io.burst ? (unsigned)left : o->io.burst;
}

/* Returns how many frames to offer now. */
static unsigned due(struct replay *p, uint64_t now, uint64_t *since)
{
	unsigned n = burst_size(p);

	if ((int64_t)(now - p->start) < 0)
		return 0;
	if (p->r->o->timing)
		return due_by_own_times(p, now, n, since);
	if (p->frame_cycles > 0) {
		/* No frame of the file is given up, however late it is. */
		*since = p->start + (uint64_t)(p->frame_cycles * (long double)p->offered);
		return (int64_t)(now - *since) < 0 ? 0 : n;
	}
	return n;
}

static unsigned fill(struct replay *p, unsigned n)
{
	const struct io_ops *ops = p->r->ops;
	struct io *io = p->r->io;
	uint8_t *payload[IO_BURST_MAX];

	n = ops->tx_acquire(io, payload, n);
	for (unsigned i = 0; i < n; i++) {
		const struct pcap_frame *f = &p->file->frames[p->next + i];

		memcpy(payload[i] - FRAME_HEADER_BYTES, f->bytes, f->length);
		ops->tx_resize(io, i, f->length);
	}
	return n;
}

/* Advances by n frames, and past the end of the file as often as --loop says. */
static void advance(struct replay *p, unsigned n)
{
	const struct options *o = p->r->o;

	p->next += n;
	p->offered += n;
	if (p->next == p->file->count) {
		if (o->timing)
			p->start = clock_cycles();
		p->next = 0;
		p->passes++;
		p->done = o->loop && p->passes % o->loop == 0;
	}
	p->done = p->done || (o->count && p->scheduled >= o->count);
}

static void yield_cpu(struct replay *p)
{
	sched_yield();
	p->yields++;
	p->since_yield = 0;
}

bool replay_step(struct replay *p)
{
	const struct options *o = p->r->o;
	/* At a rate, refused frames are dropped; otherwise they are offered again. */
	bool insists = o->rate_pps <= 0 && !o->timing;
	uint64_t now = clock_cycles(), since = now;
	unsigned n = due(p, now, &since), gone;
	int taken = 0;

	if (!n)
		return false;
	taken = p->r->ops->tx_commit(p->r->io, fill(p, n));
	if (taken < 0) {
		run_failed(p->r, "send", errno);
		return false;
	}
	if (o->rate_pps > 0 || o->timing)
		p->lateness_max = now - since > p->lateness_max ? now - since : p->lateness_max;
	gone = insists ? (unsigned)taken : n;
	for (int i = 0; i < taken; i++)
		p->bytes += p->file->frames[p->next + (unsigned)i].length + FRAME_FCS_BYTES;
	p->scheduled += gone;
	p->sent += (unsigned)taken;
	p->refused += gone - (unsigned)taken;
	p->tx_full += (unsigned)taken < n;
	p->since_yield += (unsigned)taken;
	advance(p, gone);
	if (o->yield_every &&
	        ((unsigned)taken < n || (o->yield_every > 1 && p->since_yield >= o->yield_every)))
		yield_cpu(p);
	return taken > 0;
}

void replay_json(const struct replay *p, struct json *j)
{
	json_u64(j, "scheduled", p->scheduled);
	json_u64(j, "sent", p->sent);
	json_u64(j, "refused", p->refused);
	json_u64(j, "tx_full", p->tx_full);
	json_u64(j, "bytes", p->bytes);
	json_u64(j, "passes", p->passes);
	json_u64(j, "yields", p->yields);
	json_u64(j, "lateness_max_ns", p->r ? clock_cycles_to_ns(&p->r->clock, p->lateness_max) : 0);
}
