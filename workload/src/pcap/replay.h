/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of `replay`: sends the frames of a file in order, at a rate or at their own times. */
#ifndef ICBENCH_REPLAY_H
#define ICBENCH_REPLAY_H

#include "pcap/pcap.h"
#include "run/run.h"

/* Returns the bytes of a frame that count towards a port's largest frame: with FCS, without the one VLAN tag
 * that an MTU does not count. */
uint32_t replay_packet_size(const struct pcap_frame *f);

/* Returns the largest frame by replay_packet_size(). */
const struct pcap_frame *replay_largest(const struct pcap *p);

struct replay {
	struct run *r;
	const struct pcap *file;
	size_t next;              /* next frame of the file */
	uint64_t passes;          /* complete passes through the file */
	uint64_t start;           /* cycles: beginning; with --timing that of the current pass */
	uint64_t offered;         /* frames since then */
	long double frame_cycles; /* between two frames at --rate; 0: maximum */
	uint64_t scheduled, sent, refused, tx_full, bytes, yields, lateness_max;
	uint32_t since_yield;
	bool done;
};

/* Starts at `at` (cycles). The counters continue. */
void replay_start(struct replay *p, struct run *r, const struct pcap *file, uint64_t at);

/* Offers what is due. Returns whether any frame was taken. Sets `done` at the end. */
bool replay_step(struct replay *p);

/* Appends scheduled, sent, refused, tx_full, bytes, passes, yields and lateness_max_ns. */
void replay_json(const struct replay *p, struct json *j);

#endif
