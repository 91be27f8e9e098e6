/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "traffic/receive_loop.h"
#include "traffic/receiver.h"

static void burst(struct receive_loop *s, const struct io_frame *frames, unsigned n, uint64_t now)
{
	receiver_take(&s->rx, frames, n, now, NULL);
	s->r->ops->rx_release(s->r->io);
}

static int loop(struct run *r)
{
	return serve(r, "receiver", burst);
}

const struct application app_recv = {.name = "recv", .loop = loop};
