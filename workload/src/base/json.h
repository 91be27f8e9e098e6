/* SPDX-License-Identifier: BSD-3-Clause */
/* One JSON object a line, appended key by key to a growing buffer. */
#ifndef ICBENCH_JSON_H
#define ICBENCH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *text;
	size_t length, capacity;
	bool comma; /* the next key or element needs one */
};

/* Begins {"schema":1,"type":TYPE; json_end_line() ends the object and the line. */
void json_begin_line(struct json *j, const char *type);
void json_end_line(struct json *j);
void json_free(struct json *j);

/* Appends a key with a value, or an array element if key is NULL. */
void json_u64(struct json *j, const char *key, uint64_t value);
void json_u64_or_null(struct json *j, const char *key, uint64_t value, bool known);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_string(struct json *j, const char *key, const char *value); /* NULL gives null */
void json_null(struct json *j, const char *key);
void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                 /* '}' or ']' */

#endif
