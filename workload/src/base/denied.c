/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/denied.h"

/* No launch has so many frames: who leaps that far, by a damaged frame, need not be exact. */
#define LEAP_MAX (UINT64_C(1) << 30)

void denied_walk(struct denied_walk *w, const struct denied *d, const struct shape *s, uint64_t end)
{
	if (!w->sequence)
		w->at = denied_start(s, 0);
	if (end > w->sequence && end - w->sequence > LEAP_MAX) {
		w->denied += (end - w->sequence) / 100 * d->percent;
		w->sequence = end;
		w->at = denied_start(s, end);
	}
	for (; w->sequence < end; w->sequence++)
		w->denied += denied_place(d, denied_next_place(d, s, &w->at));
}
