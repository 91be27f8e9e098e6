/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a raw socket: a VLAN tag is reinserted in its place, and frames return to their pool. */
#include "forward/raw_frame.h"

#include "check.h"

#define BYTES 60u

static void a_vlan_tag_is_put_back(void)
{
	struct raw_pool frames;
	struct raw_frame *f;
	struct virtio_net_hdr header = {
	        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 6};
	uint8_t *l2;

	CHECK(raw_pool_init(&frames, 3, 1518));
	CHECK_EQUAL(frames.left, 3);
	f = raw_frame_take(&frames);
	f->start = RAW_ROOM_BYTES - RAW_HEADER_BYTES;
	f->length = BYTES;
	memcpy(f->data + f->start, &header, sizeof(header));
	for (unsigned i = 0; i < BYTES; i++)
		f->data[RAW_ROOM_BYTES + i] = (uint8_t)i;
	raw_frame_tag(f, 0x88a8, 0x3123);
	CHECK_EQUAL(f->length, BYTES + 4);
	memcpy(&header, f->data + f->start, sizeof(header));
	CHECK_EQUAL(header.csum_start, 38);
	CHECK_EQUAL(header.csum_offset, 6);
	l2 = f->data + f->start + RAW_HEADER_BYTES;
	CHECK(memcmp(l2 + 12, "\x88\xa8\x31\x23", 4) == 0);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK_EQUAL(l2[i < 12 ? i : i + 4], i);
	f->references++;
	raw_frame_release(&frames, f);
	CHECK_EQUAL(frames.left, 2);
	raw_frame_release(&frames, f);
	CHECK_EQUAL(frames.left, 3);
	raw_pool_free(&frames);
}

int main(void)
{
	a_vlan_tag_is_put_back();
	return 0;
}
