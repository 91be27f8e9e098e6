/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <errno.h>

#include "traffic/receive_loop.h"
#include "traffic/receiver.h"

static void burst(struct receive_loop *s, const struct io_frame *frames, unsigned n, uint64_t now)
{
	struct run *r = s->r;
	uint8_t verdicts[IO_BURST_MAX];
	bool keep[IO_BURST_MAX];
	unsigned ours = 0;
	int taken;

	receiver_take(&s->rx, frames, n, now, verdicts);
	for (unsigned i = 0; i < n; i++) {
		keep[i] = verdicts[i] != RECEIVER_NOT_OURS;
		ours += keep[i];
	}
	if (!ours) {
		r->ops->rx_release(r->io);
		return;
	}
	taken = r->ops->rx_reflect(r->io, keep, n);
	if (taken < 0) {
		run_failed(r, "reflect", errno);
		return;
	}
	s->rx.windows[s->rx.current].reflected += (unsigned)taken;
	s->rx.windows[s->rx.current].refused += ours - (unsigned)taken;
}

static int loop(struct run *r)
{
	return serve(r, "server", burst);
}

const struct application app_server = {.name = "server", .round_trip = true, .loop = loop};
