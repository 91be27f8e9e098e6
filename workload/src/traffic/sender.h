/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of an application: schedules, stamps and offers frames, and counts them by window. */
#ifndef ICBENCH_SENDER_H
#define ICBENCH_SENDER_H

#include <stdint.h>

#include "base/window.h"
#include "run/run.h"
#include "traffic/histogram.h"
#include "traffic/pace.h"
#include "traffic/sequence_tracker.h"

/* Frames of a turn, in which any number of refusals counts once: half of the default ring. The raw number of
 * refusals depends on how fast the sender polls a full ring and on the size of its bursts. */
#define SENDER_TURN 128

/* Called at the end of each measured window. */
typedef void (*sender_window)(void *context, uint16_t number, const struct window_tx *w);

struct sender {
	struct run *r;
	struct pace pace;
	struct window_cursor cursor;
	struct window_tx now, total;
	struct histogram lateness, lateness_total; /* ns */
	struct histogram spacing;                  /* ns: error of the time between two bursts */
	uint64_t last_lateness_ns;
	uint64_t next_sequence;
	struct acl_walk dropped; /* by an ACL, up to next_sequence */
	uint64_t full_turn;      /* the last turn with a refusal */
	uint64_t involuntary_before, cpu_ns_before;
	uint32_t since_yield;
	uint16_t windows;  /* measured windows that have ended */
	const char *ended; /* "duration" or "count" once it is complete */
	uint64_t *sent_at; /* by sequence number modulo TRACKER_HORIZON, see sender_sent_at(); or NULL */
	struct loop_meter meter;
	unsigned moved;      /* frames in the current lap */
	uint64_t train_left; /* with --train: frames of this window's train that are not yet sent */
	bool insists;        /* refused frames are offered again and stay due at their time */
	unsigned owed;       /* refused frames of the current burst; 0: it was not offered yet */
	bool begun;          /* some frames of that burst were sent */
	bool marked;         /* the end mark was sent */
	bool full;           /* the port refused frames that will be offered again */
	sender_window on_window;
	void *context;
};

/* Returns an element of sent_at: the actual send time, and whether the frame was the first of its burst. */
static inline uint64_t sender_sent_at(uint64_t cycles, bool first)
{
	return cycles << 1 | first;
}

enum sender_step {
	SENDER_SENT,  /* a burst was offered */
	SENDER_IDLE,  /* nothing due yet */
	SENDER_ENDED, /* duration, count or an error */
};

/* backlog_s is how many seconds a sender may be late before frames are given up. Returns false if memory is
 * short. */
bool sender_init(struct sender *s, struct run *r, double backlog_s, sender_window on_window, void *context);
void sender_free(struct sender *s);

/* Allocates sent_at. Returns false if memory is short. */
bool sender_keep_times(struct sender *s);

/* Starts the schedule at r->start. */
void sender_start(struct sender *s);

/* Offers the next burst if it is due. */
enum sender_step sender_step(struct sender *s);

/* Whether more than one burst is due at time now (cycles). */
bool sender_behind(const struct sender *s, uint64_t now);

/* Ends the current lap of the cycle account at time now (cycles), in which `frames` frames moved. Each poll
 * of a client is a lap as well. */
void sender_lap(struct sender *s, uint64_t now, unsigned frames);

/* Sleeps until the next step can do something, or one of the events (io.h) has happened. Called after a step
 * that was idle or found the port full. */
void sender_rest(struct sender *s, unsigned events);

/* Yields the CPU; the time counts as idle. */
void sender_yield(struct sender *s);

/* Returns the frames of a window's train (--train FROM:TO:STEPS); 0 without trains. */
uint64_t sender_train(const struct options *o, uint16_t window);

/* Ends the current window now. */
void sender_cut(struct sender *s);

/* Sends the end mark. */
void sender_end_mark(struct sender *s);

/* Repeats the end mark twice while the peer is present, because a mark can be lost. Called after the summary;
 * a stop cuts the repeats short. */
void sender_repeat_end_mark(struct sender *s);

/* Appends the sender's keys of the summary, from the counters on. */
void sender_summary(struct sender *s, struct json *j);

#endif
