/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that involve several options; for this folder only. */
#ifndef ICBENCH_OPTION_CHECKS_H
#define ICBENCH_OPTION_CHECKS_H

#include "option/options.h"

/* Room for one sentence. The formats cut a culprit to a readable length by %.60s. */
struct failure {
	char *text;
	size_t size;
};

/* Checks that options fit together, to the back end and to the application. Returns false and a sentence in f
 * if they do not. */
bool options_fit(const struct options *o, struct failure *f);

#endif
