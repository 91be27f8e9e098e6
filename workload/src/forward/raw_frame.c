/* SPDX-License-Identifier: BSD-3-Clause */
#include "forward/raw_frame.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define MACS_BYTES 12u
#define CACHE_LINE 64u

bool raw_pool_init(struct raw_pool *p, uint32_t frames, uint32_t capacity)
{
	size_t bytes = sizeof(struct raw_frame) + RAW_ROOM_BYTES + capacity;
	/* Frames are an odd number of cache lines apart, as in sock.c. */
	size_t stride = ((bytes + CACHE_LINE - 1) / CACHE_LINE | 1) * CACHE_LINE;

	*p = (struct raw_pool){
	        .memory = aligned_alloc(CACHE_LINE, frames * stride),
	        .free = calloc(frames, sizeof(*p->free)),
	};
	if (!p->memory || !p->free)
		return false;
	while (p->left < frames) {
		p->free[p->left] = (struct raw_frame *)(void *)(p->memory + p->left * stride);
		p->left++;
	}
	return true;
}

void raw_pool_free(struct raw_pool *p)
{
	free(p->memory);
	free(p->free);
	*p = (struct raw_pool){0};
}

void raw_frame_tag(struct raw_frame *f, uint16_t protocol, uint16_t tag)
{
	const uint32_t start = f->start - RAW_VLAN_BYTES;
	uint8_t *moved = f->data + start;
	const uint16_t words[2] = {htons(protocol), htons(tag)};
	struct virtio_net_hdr header;

	memmove(moved, moved + RAW_VLAN_BYTES, RAW_HEADER_BYTES + MACS_BYTES);
	memcpy(moved + RAW_HEADER_BYTES + MACS_BYTES, words, sizeof(words));
	memcpy(&header, moved, sizeof(header));
	if (header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		/* The offset counts from the Ethernet header. */
		header.csum_start = (uint16_t)(header.csum_start + RAW_VLAN_BYTES);
		memcpy(moved, &header, sizeof(header));
	}
	f->start = start;
	f->length += RAW_VLAN_BYTES;
}
