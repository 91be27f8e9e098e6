/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/acl.h"

/* More frames than any launch sends. Only a damaged sequence number leaps so far, and its count need not be
 * exact. */
#define LEAP_MAX (UINT64_C(1) << 30)

void acl_walk(struct acl_walk *w, const struct acl *d, const struct flow_pattern *s, uint64_t end)
{
	if (!w->sequence)
		w->at = acl_start(s, 0);
	if (end > w->sequence && end - w->sequence > LEAP_MAX) {
		w->acl_drops += (end - w->sequence) / 100 * d->percent;
		w->sequence = end;
		w->at = acl_start(s, end);
	}
	for (; w->sequence < end; w->sequence++)
		w->acl_drops += acl_denies_place(d, acl_next_place(d, s, &w->at));
}
