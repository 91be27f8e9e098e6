/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of an application: tells our frames from others, accounts them by window, knows when all
 * has come.
 */
#ifndef ICBENCH_RECEIVER_H
#define ICBENCH_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/window.h"
#include "io/io.h"
#include "run/run.h"
#include "traffic/flows.h"
#include "traffic/sequence_tracker.h"

struct receiver;

/* Called when frames of a later window begin to arrive: that window's counters, so far. */
typedef void (*receiver_window)(void *context, uint16_t number, const struct window_rx *w);

struct receiver {
	struct run *r;
	struct sequence_tracker *tracker;
	struct flows flows;        /* where there are several */
	struct window_rx *windows; /* WINDOW_COUNT of them; 0 is the warm-up */
	uint64_t stream;           /* whose frames are counted, as frame_tag() has it */
	uint32_t overhead;         /* bytes of a packet size that are no payload */
	struct frame_match match;  /* our headers */
	uint64_t received;         /* distinct frames over all windows */
	uint64_t foreign, late, corrupted;
	uint64_t joined;         /* of the corrupted: several datagrams that arrived as one */
	uint64_t denied_passed;  /* frames of denied flows that came, counted nowhere else */
	struct acl_walk dropped; /* by an ACL, up to tracker_next() */
	uint64_t end_mark;       /* n > 0: the sender says it sent n-1 frames */
	uint64_t denied_due;     /* of denied flows among these */
	uint64_t deadline;       /* cycles; 0 until draining begins */
	uint64_t involuntary_before;
	uint16_t current, highest; /* the window of the newest frames; the highest seen */
	const char *ended;         /* own reason for ending, once draining has begun */
	receiver_window on_window; /* may be NULL */
	struct loop_meter *meter;  /* of the loop that receives, or NULL */
	void *context;
};

enum receiver_verdict {
	RECEIVER_NOT_OURS, /* foreign, corrupted or control */
	RECEIVER_FIRST,    /* a measuring frame, first copy */
	RECEIVER_AGAIN,    /* a further copy, or too late to tell */
};

/* False if memory is short. */
bool receiver_init(struct receiver *rx, struct run *r, receiver_window on_window, void *context);
void receiver_free(struct receiver *rx);

/* Accounts what one poll brought at time now (cycles); n may be 0. verdicts (n of them) may be NULL. */
void receiver_take(
        struct receiver *rx, const struct io_frame *frames, unsigned n, uint64_t now, uint8_t *verdicts);

/* Whether to end: told to stop, duration over or end mark seen, and then everything here or the drain over.
 */
bool receiver_done(struct receiver *rx, uint64_t now);

/* Begins to drain at time now for that reason ("duration" ...; NULL: control_stop_reason's), once. */
void receiver_begin_drain(struct receiver *rx, uint64_t now, const char *reason);

/* Writes one window line's receiver keys. */
void receiver_window_json(const struct receiver *rx, struct json *j, const struct window_rx *w);

/* The receiver's counters of the summary. */
void receiver_summary(struct receiver *rx, struct json *j);

#endif
