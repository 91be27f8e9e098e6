/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/capture.h"

#include <errno.h>
#include <time.h>

#include "base/frame.h"

static uint64_t wall_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t count_missed(const struct capture *c)
{
	return c->r->ops->missed ? c->r->ops->missed(c->r->io) : 0;
}

bool capture_open(struct capture *c, struct run *r, const char *path, char *err, size_t err_len)
{
	*c = (struct capture){.r = r};
	return pcap_writer_open(&c->file, path, UINT16_MAX, err, err_len);
}

void capture_begin(struct capture *c)
{
	c->missed = count_missed(c);
}

unsigned capture_poll(struct capture *c, unsigned most)
{
	struct run *r = c->r;
	struct io_frame frames[IO_BURST_MAX];
	int n = r->ops->rx_poll(r->io, frames, most < r->o->io.burst ? most : r->o->io.burst);
	uint64_t now;
	bool written = true;

	if (n < 0) {
		run_failed(r, "receive", errno);
		return 0;
	}
	if (n == 0) {
		if (!pcap_writer_flush(&c->file))
			run_failed(r, c->file.path, errno);
		return 0;
	}
	now = wall_clock_ns();
	for (int i = 0; i < n && written; i++) {
		const struct io_frame *f = &frames[i];
		uint32_t length = (uint32_t)f->frame_len - FRAME_FCS_BYTES;

		written = pcap_writer_add(&c->file, now, f->l2, f->l2_len, length);
		c->received++;
		c->bytes += f->frame_len;
		c->cut += f->l2_len < length;
	}
	if (!written)
		run_failed(r, c->file.path, errno);
	r->ops->rx_release(r->io);
	return (unsigned)n;
}

void capture_end(struct capture *c)
{
	c->missed = count_missed(c) - c->missed;
	if (!pcap_writer_close(&c->file))
		run_failed(c->r, c->file.path, errno);
}

void capture_json(const struct capture *c, struct json *j)
{
	json_u64(j, "received", c->received);
	json_u64(j, "bytes", c->bytes);
	json_u64(j, "cut", c->cut);
	json_u64(j, "missed", c->missed);
	json_u64(j, "file_bytes", c->file.written);
}
