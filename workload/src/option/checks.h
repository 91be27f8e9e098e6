/* SPDX-License-Identifier: BSD-3-Clause */
/* What no single row of the table can check; for this folder only. */
#ifndef ICBENCH_OPTION_CHECKS_H
#define ICBENCH_OPTION_CHECKS_H

#include "option/options.h"

/* Returns false and a sentence in err if options do not fit together, to the back end, or to the application.
 */
bool options_fit(const struct options *o, char *err, size_t err_len);

#endif
