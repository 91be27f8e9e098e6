/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options, and how a row reads its value; for this folder only. */
#ifndef ICBENCH_OPTION_TABLE_H
#define ICBENCH_OPTION_TABLE_H

#include "option/options.h"

enum option_kind {
	KIND_FLAG,
	KIND_U16,
	KIND_U32,
	KIND_U64,
	KIND_RATE,
	KIND_SECONDS,
	KIND_TEXT,
	KIND_INTERFACE,
	KIND_MICROSECONDS,
	KIND_IO,
	KIND_FAULT,
	KIND_TRAIN,
	KIND_SIZES,
	KIND_TRACE,
	KIND_FLOWS,
	KIND_ROUTES,
	KIND_PROTOCOL,
	KIND_WAIT,
	KIND_HEADER,
	KIND_ACL,
};

struct option_row {
	char letter;
	const char *name, *argument;
	enum option_kind kind;
	size_t offset;   /* of the field in struct options */
	double min, max; /* inclusive */
	const char *help;
};

extern const struct option_row OPTION_TABLE[];
extern const size_t OPTION_ROWS;
extern const struct options OPTION_DEFAULTS;

/* NULL if there is no such option. */
const struct option_row *option_by_name(const char *name, size_t length);
const struct option_row *option_by_letter(char letter);

/* Stores the value of text in the row's field. Returns false if it is no value of the row. Ignores text for
 * flags. */
bool option_store(const struct option_row *row, const char *text, struct options *o);

/* Writes what the row accepts, such as "a whole number from 1 to 5". */
void option_expectation(const struct option_row *row, char *text, size_t size);

#endif
