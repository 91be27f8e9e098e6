/* SPDX-License-Identifier: BSD-3-Clause */
/* A forwarder: frames from port 2k to port 2k+1 and back, with what is done to them on the way. */
#ifndef ICBENCH_FORWARD_H
#define ICBENCH_FORWARD_H

#include "forward/cost.h"
#include "forward/delay.h"
#include "forward/impair.h"
#include "forward/io.h"

struct options;
struct run;

/* From one port to its peer. At any time
 * received + impair.duplicated = sent + refused + impair.dropped + overflow + kept (forward_kept()). */
struct forward_way {
	unsigned from, to;
	struct impair impair;
	uint16_t stream; /* of the first frame of a sender that came last; 0: none came */
	struct delay delay;
	uint64_t received;
	uint64_t control;      /* of these, control frames; counted only if frames are looked at */
	uint64_t sent;         /* through port `to` */
	uint64_t control_sent; /* of these, control frames; counted only if accounts are asked for */
	uint64_t refused;      /* `to` had no room */
	uint64_t overflow;     /* the delay line had none */
};

struct forward {
	struct run *r;
	const struct forward_ops *ops;
	struct forward_io *io;
	unsigned ports;
	uint64_t delay; /* cycles; 0: none */
	struct cost cost;
	struct frame_match match; /* of the frames that were looked at last */
	uint64_t busy, idle;      /* cycles: polls that moved frames, and polls that did not */
	uint64_t polls, empty_polls, yields, moved;
	uint64_t last;                        /* when the last poll ended */
	struct forward_way way[IO_PORTS_MAX]; /* by the port frames come from */
};

/* Frames that are in the delay line, or wait for their successor. */
static inline uint32_t forward_kept(const struct forward_way *w)
{
	return delay_held(&w->delay) + (w->impair.held != NULL);
}

/* What the options ask for, in frames a direction: the room of a delay line, 0 without a delay. */
uint32_t forward_delay_room(const struct options *o);

/* Sets up what f->ops, f->io and f->ports lead to. False if memory is short; forward_free() in either case.
 */
bool forward_init(struct forward *f, struct run *r, const struct forward_ops *ops, struct forward_io *io);
void forward_free(struct forward *f);

/* Takes a burst from a way's port and sends what is to be sent now; `receiving` false: only the latter. True
 * if any frame moved. Errors end up in r->error. */
bool forward_poll(struct forward *f, struct forward_way *w, bool receiving);

/* Lets go of frames that wait for a successor: none will come. */
void forward_end(struct forward *f);

/* The counters, as keys of the line in r->json. */
void forward_counters(struct forward *f);

#endif
