/* SPDX-License-Identifier: BSD-3-Clause */
/* The capturing half of an application: whatever arrives goes into a pcap file. */
#ifndef ICBENCH_CAPTURE_H
#define ICBENCH_CAPTURE_H

#include "pcap/pcap.h"
#include "run/run.h"

struct capture {
	struct run *r;
	struct pcap_writer file;
	uint64_t received, bytes, cut; /* frames, their bytes with FCS, frames of which only a part is kept */
	uint64_t missed; /* lost before they could be polled; before the end, the count at the beginning */
};

/* Opens the file. False, and a sentence in err, on failure. */
bool capture_open(struct capture *c, struct run *r, const char *path, char *err, size_t err_len);

/* From now on losses count. */
void capture_begin(struct capture *c);

/* Takes in up to `most` frames. Returns how many; on an I/O error the run has failed. With nothing to take
 * it hands the file over what is buffered. */
unsigned capture_poll(struct capture *c, unsigned most);

/* Hands over what is left and closes the file; the run has failed if that cannot be done. */
void capture_end(struct capture *c);
/* received bytes cut missed file_bytes */
void capture_json(const struct capture *c, struct json *j);

#endif
