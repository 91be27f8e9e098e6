/* SPDX-License-Identifier: BSD-3-Clause */
/* The only function of run.c that the receive path uses, without the rest of run.c and its back ends. */
#include "run/run.h"

uint64_t run_involuntary_switches(void)
{
	return 0;
}
