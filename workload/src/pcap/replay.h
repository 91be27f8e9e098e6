/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of `replay`: the frames of a file, in order, at a rate or at their own times. */
#ifndef ICBENCH_REPLAY_H
#define ICBENCH_REPLAY_H

#include "pcap/pcap.h"
#include "run/run.h"

/* Bytes of a frame that count against a port's largest frame: with FCS, but without the one VLAN tag that an
 * MTU leaves out. */
uint32_t replay_packet_size(const struct pcap_frame *f);

/* The largest of all frames, by replay_packet_size(). */
const struct pcap_frame *replay_largest(const struct pcap *p);

struct replay {
	struct run *r;
	const struct pcap *file;
	size_t next;              /* frame of the file */
	uint64_t passes;          /* through the file, that have been completed */
	uint64_t start;           /* cycles: when it began; with --timing the current pass */
	uint64_t offered;         /* frames since then */
	long double frame_cycles; /* between two frames at --rate, 0 at the maximum */
	uint64_t scheduled, sent, refused, tx_full, bytes, yields, lateness_max;
	uint32_t since_yield;
	bool done;
};

/* From `at` (cycles) on; the counters go on. */
void replay_start(struct replay *p, struct run *r, const struct pcap *file, uint64_t at);

/* Offers what is due. False if nothing was, or nothing was taken. Ends with done. */
bool replay_step(struct replay *p);

/* scheduled sent refused tx_full bytes passes yields lateness_max_ns */
void replay_json(const struct replay *p, struct json *j);

#endif
