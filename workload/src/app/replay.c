/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/frame.h"
#include "pcap/capture.h"
#include "pcap/replay.h"

/* The longest pause between two frames with --timing. */
#define GAP_MAX_S 3600u

struct player {
	struct run *r;
	struct pcap file;   /* with --step: as of the last line `go` */
	struct replay sent; /* r is NULL until the first pass begins */
	struct capture capture;
	bool captures, sending, began, failed;
	unsigned steps;       /* lines `go` that were handled */
	uint64_t last_cycles; /* when the last frame left */
};

static struct player playing;

/* Makes the port's packet size that of the largest frame in the file. */
static void fit_packet_size(struct run *r, struct options *o, const struct pcap *file)
{
	static char reason[PATH_MAX + 64];
	const struct pcap_frame *largest = replay_largest(file);
	uint32_t needed = replay_packet_size(largest);

	o->io.packet_size = needed > FRAME_PACKET_MIN ? needed : FRAME_PACKET_MIN;
	snprintf(reason, sizeof(reason), "the largest frame of %s is number %zu", o->file,
	        (size_t)(largest - file->frames) + 1);
	r->packet_size_reason = reason;
}

static bool fits(const struct options *o, char *err, size_t err_len)
{
	if (o->timing && o->rate_pps > 0)
		snprintf(err, err_len,
		        "--timing keeps the frames' own times and excludes -r: leave one of them "
		        "out");
	else if (o->step && !o->supervised)
		snprintf(err, err_len, "--step waits for lines 'go' on stdin: add --supervised");
	else if (o->capture_file && strcmp(o->capture_file, o->file) == 0)
		snprintf(err, err_len, "--capture %.60s would overwrite the file to be sent: name another",
		        o->capture_file);
	else
		return true;
	return false;
}

/* Refuses times that would make --timing stand still: captures whose clock was set meanwhile, or begins at 0.
 */
static bool check_times(const struct options *o, const struct pcap *file, char *err, size_t err_len)
{
	for (size_t i = 1; o->timing && i < file->count; i++) {
		uint64_t before = file->frames[i - 1].time_ns, time = file->frames[i].time_ns;

		if (time > before && time - before > GAP_MAX_S * UINT64_C(1000000000)) {
			snprintf(err, err_len,
			        "%.60s: frame %zu is %" PRIu64
			        " s later than the one before it, and --timing waits for %u at "
			        "most: change its times with 'editcap -t', or leave --timing out",
			        o->file, i + 1, (time - before) / UINT64_C(1000000000), GAP_MAX_S);
			return false;
		}
	}
	return true;
}

static bool prepare(struct run *r, struct options *o, char *err, size_t err_len)
{
	if (!o->step) {
		if (!pcap_read(&playing.file, o->file, err, err_len))
			return false;
		if (!check_times(o, &playing.file, err, err_len))
			return false;
		fit_packet_size(r, o, &playing.file);
	}
	playing.captures = o->capture_file != NULL;
	return !playing.captures || capture_open(&playing.capture, r, o->capture_file, err, err_len);
}

/* Reads the file anew and begins to send it, for --step. */
static void begin_step(struct player *a)
{
	struct run *r = a->r;
	const struct pcap_frame *largest;
	char err[256];

	a->steps++;
	pcap_free(&a->file);
	if (!pcap_read(&a->file, r->o->file, err, sizeof(err))) {
		fprintf(stderr, "icbench-workload %s: %s\n", r->o->app_name, err);
		a->failed = true;
		return;
	}
	largest = replay_largest(&a->file);
	if (replay_packet_size(largest) > r->o->io.packet_size) {
		fprintf(stderr,
		        "icbench-workload %s: %.80s: frame %zu has %u bytes with FCS, more than "
		        "--packet-size %u\n",
		        r->o->app_name, r->o->file, (size_t)(largest - a->file.frames) + 1,
		        replay_packet_size(largest), r->o->io.packet_size);
		a->failed = true;
		return;
	}
	replay_start(&a->sent, r, &a->file, clock_cycles());
	a->sending = true;
}

static void write_sent(struct player *a)
{
	struct json *j = &a->r->json;

	json_begin_line(j, "sent");
	json_u64(j, "step", a->steps);
	json_u64(j, "frames", a->sent.offered);
	json_u64(j, "sent", a->sent.sent);
	json_u64(j, "refused", a->sent.refused);
	json_end_line(j);
	output_line_now(&a->r->output, j->text, j->length, &control_abandon);
}

/* Begins to send if it is time to. */
static void begin(struct player *a)
{
	struct run *r = a->r;

	if (a->sending)
		return;
	if (r->o->step) {
		if (a->steps < control_steps())
			begin_step(a);
	} else if (!a->began && run_note_start(r)) {
		replay_start(&a->sent, r, &a->file, r->start);
		a->began = a->sending = true;
	}
}

static void finish_sending(struct player *a)
{
	a->sending = false;
	a->last_cycles = clock_cycles();
	if (a->r->o->step)
		write_sent(a);
}

static bool time_over(const struct player *a, double seconds, uint64_t since)
{
	return clock_cycles() - since >= clock_ns_to_cycles(&a->r->clock, seconds * 1e9);
}

/* Returns why the replay is over, or NULL: --duration, or the end of the file (and of --drain, if it
 * captures). */
static const char *over(const struct player *a)
{
	const struct options *o = a->r->o;

	if (a->began && o->duration_s > 0 && (int64_t)(clock_cycles() - a->r->start) > 0 &&
	        time_over(a, o->duration_s, a->r->start))
		return "duration";
	if (o->step || !a->began || a->sending)
		return NULL;
	if (a->captures && !time_over(a, o->drain_s, a->last_cycles))
		return NULL;
	return o->count && a->sent.scheduled >= o->count ? "count" : "end";
}

static const char *replay_all(struct player *a)
{
	struct run *r = a->r;

	while (!r->error.call && !a->failed && !control_stopped()) {
		bool busy = false;
		const char *own;

		begin(a);
		if (a->sending) {
			busy = replay_step(&a->sent);
			if (a->sent.done)
				finish_sending(a);
		}
		if (a->captures)
			busy |= capture_poll(&a->capture, IO_BURST_MAX) > 0;
		own = over(a);
		if (own)
			return own;
		if (!busy && r->o->yield_every)
			sched_yield();
	}
	return NULL;
}

static int loop(struct run *r)
{
	struct player *a = &playing;
	struct json *j = &r->json;
	const char *own;

	a->r = r;
	if (a->captures)
		capture_begin(&a->capture);
	own = replay_all(a);
	if (a->captures)
		capture_end(&a->capture);
	json_begin_line(j, "summary");
	json_string(j, "role", "replay");
	json_string(j, "reason", run_reason(r, a->failed ? "error" : own));
	replay_json(&a->sent, j);
	if (a->captures)
		capture_json(&a->capture, j);
	run_finish_summary(r);
	pcap_free(&a->file);
	if (a->failed)
		return EXIT_SETUP;
	return r->error.call ? EXIT_IO : EXIT_OK;
}

const struct application app_replay = {
        .name = "replay", .sends = true, .any_frame = true, .fits = fits, .prepare = prepare, .loop = loop};
