/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of an application: paces, stamps, offers, counts by window. */
#ifndef ICBENCH_SENDER_H
#define ICBENCH_SENDER_H

#include <stdint.h>

#include "base/window.h"
#include "run/run.h"
#include "traffic/histogram.h"
#include "traffic/pace.h"
#include "traffic/sequence_tracker.h"

/* Frames of a turn, over which a port's refusals count once: half of the default ring. A sender that polls a
 * full ring is refused as often as it is quick, and the more seldom the more frames it hands over at once. */
#define SENDER_TURN 128

/* Called at the end of each measured window. */
typedef void (*sender_window)(void *context, uint16_t number, const struct window_tx *w);

struct sender {
	struct run *r;
	struct pace pace;
	struct window_cursor cursor;
	struct window_tx now, total;
	struct histogram lateness, lateness_total; /* ns */
	struct histogram
	        spacing; /* ns by which the time between two bursts differed from what it should have been */
	uint64_t last_lateness_ns;
	uint64_t next_sequence;
	struct acl_walk dropped; /* by an ACL, up to next_sequence */
	uint64_t full_turn;      /* the last turn in which the port refused a frame */
	uint64_t involuntary_before;
	uint32_t since_yield;
	uint16_t windows;  /* measured ones that have ended */
	const char *ended; /* "duration" or "count" once it has come to its own end */
	uint64_t *sent_at; /* by sequence number modulo the horizon, see sender_sent_at(), or NULL */
	struct loop_meter meter;
	unsigned moved;      /* frames, in the present lap */
	uint64_t train_left; /* with --train: frames of this window's train still to be sent */
	bool insists;        /* what a port refuses is offered again, still due when it was */
	unsigned owed;       /* frames of the present burst that were refused; 0: none was offered yet */
	bool begun;          /* others of that burst have left */
	bool marked;         /* the end mark has been sent */
	sender_window on_window;
	void *context;
};

/* What sent_at holds: the actual send time, and whether the frame was the first of its burst. */
static inline uint64_t sender_sent_at(uint64_t cycles, bool first)
{
	return cycles << 1 | first;
}

enum sender_step {
	SENDER_SENT,  /* a burst was offered */
	SENDER_IDLE,  /* nothing due yet */
	SENDER_ENDED, /* duration, count or an error */
};

/* backlog_s: how far, in seconds, a sender may lag behind its schedule before frames are given up.
 * False if memory is short. */
bool sender_init(struct sender *s, struct run *r, double backlog_s, sender_window on_window, void *context);
void sender_free(struct sender *s);

/* Keeps what sent_at holds of every frame. False if memory is short. */
bool sender_keep_times(struct sender *s);

/* From r->start on. */
void sender_start(struct sender *s);

/* Offers the burst that is due, if one is. */
enum sender_step sender_step(struct sender *s);

/* Whether more than one burst is due at time now (cycles). */
bool sender_behind(const struct sender *s, uint64_t now);

/* Ends the present lap of the cycle account, in which so many frames moved, at time now (cycles). A client's
 * polls are laps, too. */
void sender_lap(struct sender *s, uint64_t now, unsigned frames);

/* Gives the CPU to others; the time is counted as idle. */
void sender_yield(struct sender *s);

/* Frames of a window's train (--train FROM:TO:STEPS), 0 without trains. */
uint64_t sender_train(const struct options *o, uint16_t window);

/* Cuts the current window short at the present moment. */
void sender_cut(struct sender *s);

/* Sends the end mark. */
void sender_end_mark(struct sender *s);

/* Repeats an end mark that was sent, twice while the peer is there: it can be lost. The summary is written
 * before, and nobody who has all summaries need wait: a stop ends it. */
void sender_repeat_end_mark(struct sender *s);

/* role, stream, reason, windows and the sender's counters, up to `sequences`. */
void sender_summary(struct sender *s, struct json *j);

#endif
