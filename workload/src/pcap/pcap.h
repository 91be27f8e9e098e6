/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of frames in classic pcap format. All its four forms are read (two byte orders, microseconds or
 * nanoseconds); nanoseconds are written. The content of a file is not trusted.
 */
#ifndef ICBENCH_PCAP_H
#define ICBENCH_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size limit of a file to be read. */
#define PCAP_FILE_MAX ((size_t)1 << 30)

struct pcap_frame {
	uint64_t time_ns; /* since 1970 */
	const uint8_t *bytes;
	uint32_t length; /* without FCS */
};

struct pcap {
	struct pcap_frame *frames; /* in the file's order; they point into data */
	size_t count;
	uint8_t *data;
};

/* Finds the frames in the content of a file, which must outlive them. Returns false and a sentence in err,
 * which begins with the culprit, if it is no complete pcap file of whole Ethernet frames. */
bool pcap_parse(struct pcap *p, const uint8_t *data, size_t size, char *err, size_t err_len);
/* The same for a file, which is read to its end; err names it. */
bool pcap_read(struct pcap *p, const char *path, char *err, size_t err_len);
void pcap_free(struct pcap *p);

struct pcap_writer {
	int fd;
	const char *path;
	uint8_t *buffer; /* whole records only */
	size_t used;
	uint64_t written; /* bytes of whole records in the file, header included */
};

/* Creates or truncates the file. snap_bytes is the largest `kept` of later frames. */
bool pcap_writer_open(
        struct pcap_writer *w, const char *path, uint32_t snap_bytes, char *err, size_t err_len);
/* Adds a frame, of which `kept` of `length` bytes are present. Returns false with errno if the file cannot
 * grow; it then ends with the last whole record. */
bool pcap_writer_add(
        struct pcap_writer *w, uint64_t time_ns, const uint8_t *bytes, uint32_t kept, uint32_t length);
/* Writes what is buffered, so that a kill loses nothing of it. */
bool pcap_writer_flush(struct pcap_writer *w);
bool pcap_writer_close(struct pcap_writer *w);

#endif
