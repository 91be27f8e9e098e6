/* SPDX-License-Identifier: BSD-3-Clause */
/* A forwarder: passes frames from port 2k to port 2k+1 and back, delayed or impaired. */
#ifndef ICBENCH_FORWARD_H
#define ICBENCH_FORWARD_H

#include "forward/cost.h"
#include "forward/delay.h"
#include "forward/impair.h"
#include "forward/io.h"

struct options;
struct run;

/* The direction from one port to its peer. At any time received + impair.duplicated = sent + refused +
 * impair.dropped + overflow + kept (forward_kept()). */
struct forward_way {
	unsigned from, to;
	struct impair impair;
	uint16_t stream; /* of the latest first frame of a sender; 0: there was none */
	struct delay delay;
	uint64_t received;
	uint64_t control;      /* those that are control frames; counted only if frames are inspected */
	uint64_t sent;         /* through port `to` */
	uint64_t control_sent; /* those that are control frames; counted only with --accounts */
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
	struct frame_match match; /* of the frames inspected last */
	uint64_t busy, idle;      /* cycles of polls that moved frames, and of others */
	uint64_t polls, empty_polls, yields, moved;
	uint64_t last;                        /* when the last poll ended */
	struct forward_way way[IO_PORTS_MAX]; /* by the receiving port */
};

/* Returns the frames in the delay line, and the one that waits for its successor. */
static inline uint32_t forward_kept(const struct forward_way *w)
{
	return delay_held(&w->delay) + (w->impair.held != NULL);
}

/* Returns the room of the delay line in frames for each direction; 0 without a delay. */
uint32_t forward_delay_room(const struct options *o);

/* Initializes a forwarder over open ports. Returns false if memory is short; forward_free() in either
 * case. */
bool forward_init(struct forward *f, struct run *r, const struct forward_ops *ops, struct forward_io *io);
void forward_free(struct forward *f);

/* Receives a burst from a direction's port, unless `receiving` is false, and sends what is due. Returns
 * whether any frame moved. Errors are recorded in r->error. */
bool forward_poll(struct forward *f, struct forward_way *w, bool receiving);

/* Releases frames that wait for a successor, since none will arrive. */
void forward_end(struct forward *f);

/* Appends the counters to the line in r->json. */
void forward_counters(struct forward *f);

#endif
