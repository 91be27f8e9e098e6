/* SPDX-License-Identifier: BSD-3-Clause */
/* --header: what it takes, which frames hold it, and who can send them; for this folder alone. */
#ifndef ICBENCH_OPTION_HEADER_H
#define ICBENCH_OPTION_HEADER_H

#include "option/table.h"

/* Reads NAME or NAME+vlanN; false if it is neither. */
bool header_store(const struct option_row *row, const char *text, struct frame_header *h);

/* False and a sentence if the application, its port or a packet size cannot have the headers. */
bool header_fits(const struct options *o, char *text, size_t size);

#endif
