/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's round-trip times: the run's histograms, and a restart of them. */
#include "traffic/client_times.h"

#include "base/frame.h"
#include "check.h"
#include "traffic/sender.h"

#define SENT UINT64_C(5000)
#define RTT_NS 1000u

static const struct clock CLOCK = {.hz = 1000000000, .ns_per_cycle = 1};

/* An answer to a frame of a window. */
static void take(struct client_times *t, uint16_t window, uint64_t sequence)
{
	uint8_t payload[64] = {0}, verdict = RECEIVER_FIRST;
	struct io_frame frame = {.payload = payload, .payload_len = sizeof(payload)};

	frame_stamp(payload, (struct frame_label){1, window, sequence}, SENT);
	client_times_take(t, &frame, &verdict, 1, SENT + RTT_NS);
}

static void check_counts(const struct client_times *t, uint64_t all, uint64_t first)
{
	CHECK_EQUAL(t->intended.count, all);
	CHECK_EQUAL(t->actual.count, all);
	CHECK_EQUAL(t->first.count, first);
}

/* Unanswered requests and requests that were never sent are slower than answered ones, in open windows and in
 * closed ones. */
static void unanswered_requests(void)
{
	uint64_t *sent_at = calloc(TRACKER_HORIZON, sizeof(*sent_at));
	struct client_times t;

	CHECK(sent_at && client_times_init(&t, &CLOCK, 3, sent_at));
	for (uint64_t sequence = 0; sequence < 40; sequence++) {
		sent_at[sequence] = sender_sent_at(SENT, true);
		take(&t, (uint16_t)(sequence < 20 ? 1 : 2), sequence);
	}
	t.due[1] = (struct window_tx){.scheduled = 15, .not_offered = 5};
	t.due[2] = (struct window_tx){.scheduled = 35, .not_offered = 6};
	CHECK(client_times_window(&t, 1, true).p50 >= RTT_NS);
	/* During the run, answers are outstanding. */
	CHECK(client_times_window(&t, 2, false).p50 >= RTT_NS);
	CHECK_EQUAL(client_times_window(&t, 2, true).p50, 0);
	t.due[2].not_offered = 5;
	CHECK(client_times_window(&t, 2, true).p50 >= RTT_NS);
	t.due[2].scheduled = 36;
	take(&t, 2 + CLIENT_OPEN_WINDOWS, 30); /* a copy in sequence, of another window: it closes window 2 */
	CHECK_EQUAL(client_times_window(&t, 2, true).count, 20);
	CHECK_EQUAL(client_times_window(&t, 2, true).p50, 0);
	client_times_free(&t);
	free(sent_at);
}

int main(void)
{
	uint64_t *sent_at = calloc(TRACKER_HORIZON, sizeof(*sent_at));
	struct client_times t;

	CHECK(sent_at);
	for (uint64_t sequence = 0; sequence < 16; sequence++)
		sent_at[sequence] = sender_sent_at(SENT, sequence % 2 == 0);
	CHECK(client_times_init(&t, &CLOCK, 3, sent_at));
	take(&t, FRAME_WINDOW_WARMUP, 0);
	take(&t, 1, 1);
	take(&t, 2, 2);
	CHECK_EQUAL(t.from, 1);
	check_counts(&t, 2, 1);

	client_times_restart(&t, 4);
	CHECK_EQUAL(t.from, 4);
	check_counts(&t, 0, 0);
	take(&t, 2, 3); /* a late answer to a discarded request */
	take(&t, 3, 4);
	check_counts(&t, 0, 0);
	take(&t, 4, 5);
	take(&t, 5, 6);
	check_counts(&t, 2, 1);
	CHECK_EQUAL(t.intended.min, RTT_NS);
	CHECK_EQUAL(t.intended.max, RTT_NS);

	/* The figures of windows are unaffected. */
	for (uint16_t window = 1; window <= 5; window++)
		CHECK_EQUAL(client_times_window(&t, window, false).count, window == 2 ? 2 : 1);
	client_times_free(&t);
	free(sent_at);
	unanswered_requests();
	return 0;
}
