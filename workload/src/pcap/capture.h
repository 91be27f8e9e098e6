/* SPDX-License-Identifier: BSD-3-Clause */
/* The capturing half of an application: writes whatever arrives to a pcap file. */
#ifndef ICBENCH_CAPTURE_H
#define ICBENCH_CAPTURE_H

#include "pcap/pcap.h"
#include "run/run.h"

struct capture {
	struct run *r;
	struct pcap_writer file;
	uint64_t received, bytes, cut; /* frames; their bytes with FCS; truncated frames */
	uint64_t missed; /* lost before they could be polled; until the end, the count at the beginning */
};

/* Opens the file. Returns false and a sentence in err on failure. */
bool capture_open(struct capture *c, struct run *r, const char *path, char *err, size_t err_len);

/* Starts counting losses. */
void capture_begin(struct capture *c);

/* Receives up to `most` frames. Returns how many; records an I/O error in the run. Without frames it flushes
 * the file. */
unsigned capture_poll(struct capture *c, unsigned most);

/* Flushes and closes the file; records an error in the run. */
void capture_end(struct capture *c);
/* Appends received, bytes, cut, missed and file_bytes. */
void capture_json(const struct capture *c, struct json *j);

#endif
