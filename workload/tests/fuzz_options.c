/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: arbitrary arguments. The input is cut into arguments at its zero bytes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "io/io.h"
#include "option/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The back ends without code. */
const struct io_ops io_udp, io_gso, io_raw, io_packet, io_null, io_tap;

/* One application of each kind that the command line distinguishes, without code. */
static const struct application CLIENT = {.name = "client", .sends = true, .round_trip = true},
                                REPLAY = {.name = "replay", .sends = true, .any_frame = true},
                                CAPTURE = {.name = "capture", .any_frame = true},
                                FORWARD = {.name = "forward", .forwards = true};
static const struct application *const APPS[] = {&CLIENT, &REPLAY, &CAPTURE, &FORWARD, NULL};

static void check_accepted(const struct options *o)
{
	assert(o->io.packet_size >= FRAME_PACKET_MIN && o->io.packet_size <= FRAME_PACKET_MAX);
	assert(o->io.burst >= 1 && o->io.burst <= IO_BURST_MAX);
	assert(o->io.stream_id && o->io.ends.udp_port && o->io.ring);
	assert(o->histogram_digits >= 1 && o->histogram_digits <= 5);
	assert(o->rate_pps >= 0 && o->rate_pps <= 1e9 && o->window_s >= 0.001);
	assert(o->duration_s >= 0);
	assert(o->app->any_frame || o->duration_s / o->window_s <= FRAME_WINDOW_LAST);
	assert(!o->app->any_frame || (o->file && o->backend->flags & IO_ANY_FRAME));
	assert(o->fault.kind == FAULT_NONE || o->fault.every >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *addresses[] = {"10.0.0.1", "02:00:00:00:00:01", "10.0.0.2", "02:00:00:00:00:02"};
	char *text = malloc(size + 1), *argv[70], err[256] = "";
	int argc = 0;
	struct options o;
	enum options_outcome outcome;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	argv[argc++] = "icbench-workload";
	/* Half of the inputs get a valid beginning, so that the options are reached. */
	if (size && data[0] & 1) {
		argv[argc++] = "client";
		for (int i = 0; i < 4; i++)
			argv[argc++] = addresses[i];
	}
	for (size_t at = 0; at < size && argc < 69; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	argv[argc] = NULL;
	outcome = options_parse(&o, APPS, argc, argv, err, sizeof(err));
	assert((outcome == OPTIONS_BAD) == (err[0] != 0));
	if (outcome == OPTIONS_RUN)
		check_accepted(&o);
	free(text);
	return 0;
}
