/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of an application: recognizes our frames, counts them by window, and knows when all have
 * arrived.
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

/* Called when frames of a later window begin to arrive, with the window's counters so far. */
typedef void (*receiver_window)(void *context, uint16_t number, const struct window_rx *w);

struct receiver {
	struct run *r;
	struct sequence_tracker *tracker;
	struct flows flows;        /* with several flows */
	struct window_rx *windows; /* WINDOW_COUNT of them; 0 is the warm-up */
	uint64_t stream;           /* of the frames to be counted, as frame_tag() returns it */
	uint32_t overhead;         /* bytes of a packet size that are not payload */
	struct frame_match match;  /* our headers */
	uint64_t received;         /* distinct frames over all windows */
	uint64_t foreign, late, corrupted;
	uint64_t joined;           /* those of the corrupted that were several datagrams in one */
	uint64_t acl_drops_passed; /* frames that an ACL should have dropped; in no other counter */
	struct acl_walk dropped;   /* by an ACL, up to tracker_next() */
	uint64_t end_mark;         /* n > 0: the sender has sent n-1 frames */
	uint64_t acl_drop_due;     /* frames of these that an ACL drops */
	uint64_t deadline;         /* cycles; 0 until draining begins */
	uint64_t involuntary_before, cpu_ns_before;
	uint16_t current, highest; /* the window of the latest frames; the highest window seen */
	const char *ended;         /* reason for ending, once draining has begun; NULL: control_stop_reason */
	receiver_window on_window; /* may be NULL */
	struct loop_meter *meter;  /* of the receiving loop, or NULL */
	void *context;
};

enum receiver_verdict {
	RECEIVER_NOT_OURS, /* foreign, corrupted or control */
	RECEIVER_FIRST,    /* a measuring frame, first copy */
	RECEIVER_AGAIN,    /* a further copy, or too late to tell */
};

/* Returns false if memory is short. */
bool receiver_init(struct receiver *rx, struct run *r, receiver_window on_window, void *context);
void receiver_free(struct receiver *rx);

/* Counts the frames of one poll at time now (cycles); n may be 0. verdicts has n elements or is NULL. */
void receiver_take(
        struct receiver *rx, const struct io_frame *frames, unsigned n, uint64_t now, uint8_t *verdicts);

/* Whether to end: after a stop, --duration or an end mark, once all frames have arrived or the drain is
 * over. */
bool receiver_done(struct receiver *rx, uint64_t now);

/* Begins to drain at time now, for that reason ("duration" ...; NULL: control_stop_reason). Has no effect the
 * second time. */
void receiver_begin_drain(struct receiver *rx, uint64_t now, const char *reason);

/* Appends the receiver's keys of a window line. */
void receiver_window_json(const struct receiver *rx, struct json *j, const struct window_rx *w);

/* Appends the receiver's keys of the summary. */
void receiver_summary(struct receiver *rx, struct json *j);

#endif
