/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of a raw forwarder's frames. Each frame follows the virtio header that a packet socket passes and
 * expects (PACKET_VNET_HDR).
 */
#ifndef ICBENCH_RAW_FRAME_H
#define ICBENCH_RAW_FRAME_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAW_HEADER_BYTES ((uint32_t)sizeof(struct virtio_net_hdr))
#define RAW_VLAN_BYTES 4u
/* Room before the Ethernet header: the virtio header and a reinserted VLAN tag. */
#define RAW_ROOM_BYTES 32u

struct raw_frame {
	uint32_t references;
	uint32_t start;  /* of the virtio header, in data */
	uint32_t length; /* of the frame, without FCS */
	uint8_t data[];
};

struct raw_pool {
	uint8_t *memory;
	struct raw_frame **free;
	uint32_t left;
};

/* Allocates frames of up to `capacity` bytes. Returns false if memory is short; raw_pool_free() in either
 * case. */
bool raw_pool_init(struct raw_pool *p, uint32_t frames, uint32_t capacity);
void raw_pool_free(struct raw_pool *p);

/* Takes a frame with one reference. One must be left. */
static inline struct raw_frame *raw_frame_take(struct raw_pool *p)
{
	struct raw_frame *f = p->free[--p->left];

	f->references = 1;
	return f;
}

static inline void raw_frame_release(struct raw_pool *p, struct raw_frame *f)
{
	if (--f->references == 0)
		p->free[p->left++] = f;
}

/* Reinserts a VLAN tag that the kernel removed. */
void raw_frame_tag(struct raw_frame *f, uint16_t protocol, uint16_t tag);

#endif
