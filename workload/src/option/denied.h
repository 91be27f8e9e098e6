/* SPDX-License-Identifier: BSD-3-Clause */
/* --denied and --peer-denied: what they take, and who can send such frames; for this folder alone. */
#ifndef ICBENCH_OPTION_DENIED_H
#define ICBENCH_OPTION_DENIED_H

#include "option/table.h"

/* Reads PERCENT:PLACES:MARK, the mark a port or a text; false if it is none. */
bool denied_store(const struct option_row *row, const char *text, struct denied *d);

/* False and a sentence if the application, its port or a packet size cannot have denied frames. */
bool denied_fits(const struct options *o, char *text, size_t size);

#endif
