/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/client_times.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/frame.h"
#include "base/window.h"

#define WINDOW_DIGITS 2

bool client_times_init(
        struct client_times *t, const struct clock *clock, unsigned digits, const uint64_t *sent_at)
{
	bool ok;

	*t = (struct client_times){.clock = clock, .sent_at = sent_at, .from = 1};
	ok = histogram_init(&t->intended, digits) && histogram_init(&t->actual, digits) &&
	     histogram_init(&t->first, digits);
	for (unsigned i = 0; ok && i < CLIENT_OPEN_WINDOWS; i++)
		ok = histogram_init(&t->open[i].rtt, WINDOW_DIGITS);
	t->closed = calloc(WINDOW_COUNT, sizeof(*t->closed));
	t->due = calloc(WINDOW_COUNT, sizeof(*t->due));
	return ok && t->closed && t->due;
}

void client_times_free(struct client_times *t)
{
	histogram_free(&t->intended);
	histogram_free(&t->actual);
	histogram_free(&t->first);
	for (unsigned i = 0; i < CLIENT_OPEN_WINDOWS; i++)
		histogram_free(&t->open[i].rtt);
	free(t->closed);
	free(t->due);
	t->closed = NULL;
	t->due = NULL;
}

/* Returns the requests of a window that were sent or should have been sent, and have no answer. */
static uint64_t count_missing(const struct client_times *t, uint16_t number, uint64_t answers)
{
	const struct window_tx *w = &t->due[number];
	uint64_t requests = w->scheduled + w->not_offered;

	return requests > answers ? requests - answers : 0;
}

static struct client_rtt summarize(const struct histogram *h, uint64_t unanswered)
{
	struct client_rtt w = {.count = h->count, .min = h->min, .max = h->max, .mean = histogram_mean(h)};

	histogram_quantile(h, 0.5, unanswered, &w.p50);
	histogram_quantile(h, 0.99, unanswered, &w.p99);
	return w;
}

/* Returns the window's open histogram; NULL if it has been closed. Such late answers count only in the
 * histograms of the run. */
static struct histogram *open_window(struct client_times *t, uint16_t number)
{
	unsigned i = number % CLIENT_OPEN_WINDOWS;

	if (t->open[i].number == number)
		return &t->open[i].rtt;
	if (number < t->open[i].number)
		return NULL;
	if (t->open[i].number)
		t->closed[t->open[i].number] =
		        summarize(&t->open[i].rtt, count_missing(t, t->open[i].number, t->open[i].rtt.count));
	histogram_reset(&t->open[i].rtt);
	t->open[i].number = number;
	return &t->open[i].rtt;
}

/* An answer cannot arrive before its frame was sent, so a time in the future is a damaged stamp. */
static uint64_t elapsed_ns(const struct clock *clock, uint64_t from, uint64_t to)
{
	return (int64_t)(to - from) < 0 ? 0 : clock_cycles_to_ns(clock, to - from);
}

void client_times_take(struct client_times *t, const struct io_frame *frames, const uint8_t *verdicts,
        unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++) {
		struct frame_label label;
		struct histogram *window;
		uint64_t ns, sent;

		if (verdicts[i] != RECEIVER_FIRST)
			continue;
		label = frame_label(frames[i].payload);
		if (label.window == FRAME_WINDOW_WARMUP)
			continue;
		ns = elapsed_ns(t->clock, frame_time(frames[i].payload), now);
		window = open_window(t, label.window);
		if (window)
			histogram_record(window, ns, 1);
		if (label.window < t->from)
			continue;
		histogram_record(&t->intended, ns, 1);
		sent = t->sent_at[label.sequence % TRACKER_HORIZON];
		if (sent & 1)
			histogram_record(&t->first, ns, 1);
		ns = elapsed_ns(t->clock, sent >> 1, now);
		histogram_record(&t->actual, ns, 1);
	}
}

void client_times_restart(struct client_times *t, uint16_t from)
{
	histogram_reset(&t->intended);
	histogram_reset(&t->actual);
	histogram_reset(&t->first);
	t->from = from;
}

struct client_rtt client_times_window(struct client_times *t, uint16_t number, bool final)
{
	const unsigned i = number % CLIENT_OPEN_WINDOWS;
	const struct histogram *open = &t->open[i].rtt;

	if (t->open[i].number != number)
		return t->closed[number];
	return summarize(open, final ? count_missing(t, number, open->count) : 0);
}

void client_window_json(struct json *j, const struct client_rtt *w)
{
	json_open(j, "rtt", '{');
	json_u64(j, "count", w->count);
	json_u64_or_null(j, "min_ns", w->min, w->count);
	json_u64_or_null(j, "mean_ns", (uint64_t)(w->mean + 0.5), w->count);
	json_u64_or_null(j, "p50_ns", w->p50, w->p50);
	json_u64_or_null(j, "p99_ns", w->p99, w->p99);
	json_u64_or_null(j, "max_ns", w->max, w->count);
	json_close(j, '}');
}
