/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: arbitrary bytes as a pcap file. Half of the inputs get a valid header, so that the records are
 * reached.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame.h"
#include "pcap/pcap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint32_t HEADER[6] = {0xa1b23c4d, 4u << 16 | 2, 0, 0, 65535, 1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t head = size && data[0] & 1 ? sizeof(HEADER) : 0, length = head + size;
	uint8_t *file = malloc(length ? length : 1); /* of exactly its size */
	char err[200] = "";
	struct pcap p;

	assert(file);
	memcpy(file, HEADER, head);
	if (size)
		memcpy(file + head, data, size);
	if (pcap_parse(&p, file, length, err, sizeof(err))) {
		assert(p.count && !err[0]);
		for (size_t i = 0; i < p.count; i++) {
			const struct pcap_frame *f = &p.frames[i];

			assert(f->length >= FRAME_ETH_BYTES &&
			        f->length <= FRAME_PACKET_MAX - FRAME_FCS_BYTES + FRAME_TAGS_BYTES);
			assert(f->bytes >= file && f->bytes + f->length <= file + length);
			assert(i == 0 || f->bytes > p.frames[i - 1].bytes);
		}
	} else {
		assert(err[0]);
	}
	p.data = NULL;
	pcap_free(&p);
	free(file);
	return 0;
}
