/* SPDX-License-Identifier: BSD-3-Clause */
/* For test_pcap.py: reads names of files on stdin, one a line; prints of each what pcap_read() finds: a line
 * "TIME_NS HEX" a frame, or "error SENTENCE", then an empty line. With an argument each file is also written
 * anew under that name, every frame kept but for its last byte if it has an odd length.
 */
#include "pcap/pcap.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

static void copy(const struct pcap *p, const char *path)
{
	struct pcap_writer w;
	char err[256];

	CHECK(pcap_writer_open(&w, path, 65535, err, sizeof(err)));
	for (size_t i = 0; i < p->count; i++) {
		const struct pcap_frame *f = &p->frames[i];

		CHECK(pcap_writer_add(&w, f->time_ns, f->bytes, f->length - f->length % 2, f->length));
	}
	CHECK(pcap_writer_close(&w));
}

int main(int argc, char **argv)
{
	char path[4096], err[256];
	struct pcap p;

	while (fgets(path, sizeof(path), stdin)) {
		path[strcspn(path, "\n")] = 0;
		if (!pcap_read(&p, path, err, sizeof(err))) {
			printf("error %s\n\n", err);
		} else {
			for (size_t i = 0; i < p.count; i++) {
				printf("%" PRIu64 " ", p.frames[i].time_ns);
				for (uint32_t k = 0; k < p.frames[i].length; k++)
					printf("%02x", p.frames[i].bytes[k]);
				putchar('\n');
			}
			putchar('\n');
			if (argc > 1)
				copy(&p, argv[1]);
			pcap_free(&p);
		}
		fflush(stdout);
	}
	return 0;
}
