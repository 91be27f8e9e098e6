/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrived of each flow: a frame is reordered if a later one of its own flow came before it (RFC 4737
 * within a flow), and one that never came is missed by its flow.
 */
#ifndef ICBENCH_FLOWS_H
#define ICBENCH_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/acl.h"
#include "base/flow_pattern.h"

struct json;

/* Flows that the summary names. */
#define FLOWS_NAMED 16u
#define FLOWS_EXACT (UINT64_C(1) << 16)

struct flows {
	const struct flow_pattern *pattern;
	const struct acl *acl; /* the frames that it drops are not missing */
	uint64_t *next;        /* by flow: one more than the highest sequence number seen */
	uint64_t *lost;        /* by flow */
};

/* False if memory is short. pattern_flows_recur(). */
bool flows_init(struct flows *f, const struct flow_pattern *pattern, const struct acl *acl);
void flows_free(struct flows *f);

/* n frames have come, numbers first and on, later than all before. */
void flows_take_run(struct flows *f, uint64_t first, unsigned n);

/* The frame of that number came, behind one of a higher number. Whether one of its flow was such. */
bool flows_take_late(struct flows *f, uint64_t sequence);

/* n frames from number `first` on never came. context: struct flows. Takes as long for any n beyond
 * FLOWS_EXACT; of so many the flows of Zipf's law get what they have in the long run. */
void flows_note_lost(void *context, uint64_t first, uint64_t n);

/* flows, lossy_flows (how many lost a frame), and worst_flows: [flow, frames] of those that lost most. */
void flows_json(const struct flows *f, struct json *j);

#endif
