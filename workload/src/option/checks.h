/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that involve several options; for this folder only. */
#ifndef ICBENCH_OPTION_CHECKS_H
#define ICBENCH_OPTION_CHECKS_H

#include "option/options.h"

/* Checks that options fit together, to the back end and to the application. Returns false and a sentence in
 * err if they do not. */
bool options_fit(const struct options *o, char *err, size_t err_len);

#endif
