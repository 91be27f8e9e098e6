/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's round-trip times: over the whole run from the intended and from the actual send time, and by
 * window.
 */
#ifndef ICBENCH_CLIENT_TIMES_H
#define ICBENCH_CLIENT_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/window.h"
#include "io/io.h"
#include "traffic/histogram.h"
#include "traffic/receiver.h"
#include "traffic/sequence_tracker.h"

/* The number of windows whose histograms are open at a time, because answers can still arrive. */
#define CLIENT_OPEN_WINDOWS 32

/* A closed window's figures in ns. p50 and p99 are 0 if there are too few samples, and if they lie among the
 * unanswered requests. */
struct client_rtt {
	uint64_t count, min, p50, p99, max;
	double mean;
};

struct client_times {
	const struct clock *clock;
	/* In ns, measured windows only. `first` has the frames of `intended` that were the first of their
	 * burst. */
	struct histogram intended, actual, first;
	struct {
		uint16_t number; /* 0: unused */
		struct histogram rtt;
	} open[CLIENT_OPEN_WINDOWS];
	struct client_rtt *closed; /* WINDOW_COUNT of them, by window */
	const uint64_t *sent_at;   /* of the sender, see sender_sent_at() */
	struct window_tx *due;     /* by window, once it has ended: what was due in it */
	uint16_t from;             /* the first window in the run's histograms */
};

/* Returns false if memory is short. */
bool client_times_init(
        struct client_times *t, const struct clock *clock, unsigned digits, const uint64_t *sent_at);
void client_times_free(struct client_times *t);

/* Records the first copies among n answers that arrived at time now (cycles). */
void client_times_take(struct client_times *t, const struct io_frame *frames, const uint8_t *verdicts,
        unsigned n, uint64_t now);

/* Restarts the run's histograms with the frames of this window and later ones. */
void client_times_restart(struct client_times *t, uint16_t from);

/* Returns the window's figures so far. At the end of the run (`final`) unanswered requests are slower than
 * all answered ones. */
struct client_rtt client_times_window(struct client_times *t, uint16_t number, bool final);

void client_window_json(struct json *j, const struct client_rtt *w);

#endif
