/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/dress.h"

#include "base/frame.h"

static void set_size(const struct io_ops *ops, struct io *io, uint8_t *payload, unsigned i, uint32_t size)
{
	if (ops->sees_l2)
		frame_set_size(payload - FRAME_HEADER_BYTES, size);
	if (ops->tx_resize)
		ops->tx_resize(io, i, size - FRAME_FCS_BYTES);
}

void dress_frames(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload[],
        unsigned n, uint64_t first)
{
	const struct shape *s = &o->shape;
	uint32_t at;

	if (!s->cycle)
		return;
	at = (uint32_t)(first % s->cycle);
	for (unsigned i = 0; i < n; i++) {
		set_size(ops, io, payload[i], i, s->sizes[at]);
		at = at + 1 == s->cycle ? 0 : at + 1;
	}
}

void dress_control(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload)
{
	if (o->shape.cycle)
		set_size(ops, io, payload, 0, o->packet_size);
}
