/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss and reordering by flow. A frame is reordered if a later frame of its flow arrived before it (RFC 4737
 * within a flow).
 */
#ifndef ICBENCH_FLOWS_H
#define ICBENCH_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/acl.h"
#include "base/flow_pattern.h"

struct json;

/* The number of flows that the summary lists. */
#define FLOWS_NAMED 16u
#define FLOWS_EXACT (UINT64_C(1) << 16)

struct flows {
	const struct flow_pattern *pattern;
	const struct acl *acl; /* frames that it drops are not lost */
	uint64_t *next;        /* by flow: one more than the highest sequence number seen */
	uint64_t *lost;        /* lost frames by flow */
};

/* For patterns with pattern_flows_recur(). Returns false if memory is short. */
bool flows_init(struct flows *f, const struct flow_pattern *pattern, const struct acl *acl);
void flows_free(struct flows *f);

/* n frames have arrived, with consecutive numbers from `first` on, later than all before. */
void flows_take_run(struct flows *f, uint64_t first, unsigned n);

/* A frame has arrived after one with a higher number. Returns whether the later one was of the same flow. */
bool flows_take_late(struct flows *f, uint64_t sequence);

/* n frames from number `first` on are lost; `context` is a struct flows. The time is bounded: above
 * FLOWS_EXACT, the flows of Zipf's law get their long-term share. */
void flows_note_lost(void *context, uint64_t first, uint64_t n);

/* Appends flows, lossy_flows (the number of flows that lost a frame) and worst_flows: [flow, frames] of the
 * flows that lost most. */
void flows_json(const struct flows *f, struct json *j);

#endif
