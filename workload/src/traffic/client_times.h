/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's round-trip times: over the whole run from the intended and from the actual send time, and by
 * window. */
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

/* Windows whose histograms are open at a time: those that answers still come in for. */
#define CLIENT_OPEN_WINDOWS 32

/* A closed window's figures, ns; p50 and p99 are 0 where samples are too few to tell, and where they lie
 * among requests that have no answer. */
struct client_rtt {
	uint64_t count, min, p50, p99, max;
	double mean;
};

struct client_times {
	const struct clock *clock;
	/* ns, measured windows only; `first` has those frames of `intended` that were the first of their
	 * burst. */
	struct histogram intended, actual, first;
	struct {
		uint16_t number; /* 0: unused */
		struct histogram rtt;
	} open[CLIENT_OPEN_WINDOWS];
	struct client_rtt *closed; /* WINDOW_COUNT of them */
	const uint64_t *sent_at;   /* the sender's, see sender_sent_at() */
	struct window_tx *due;     /* by window, once it has ended: what was to be sent in it */
	uint16_t from;             /* the first window whose frames the run's histograms have */
};

/* False if memory is short. */
bool client_times_init(
        struct client_times *t, const struct clock *clock, unsigned digits, const uint64_t *sent_at);
void client_times_free(struct client_times *t);

/* Records the first copies among n answers that arrived at time now (cycles). */
void client_times_take(struct client_times *t, const struct io_frame *frames, const uint8_t *verdicts,
        unsigned n, uint64_t now);

/* Begins the run's histograms anew: with the frames of this window and later ones. */
void client_times_restart(struct client_times *t, uint16_t from);

/* The window's figures so far. At the end of all (`final`) what has not come back is slower than what has. */
struct client_rtt client_times_window(struct client_times *t, uint16_t number, bool final);

void client_window_json(struct json *j, const struct client_rtt *w);

#endif
