/* SPDX-License-Identifier: BSD-3-Clause */
/* The one function of run.c that the receive path uses, without the rest of run.c and the backends behind it.
 */
#include "run/run.h"

uint64_t run_involuntary_switches(void)
{
	return 0;
}
