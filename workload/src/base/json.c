/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct json *j, const char *text, size_t n)
{
	if (j->length + n > j->capacity) {
		size_t capacity = (j->length + n) * 2 + 1024;
		char *grown = realloc(j->text, capacity);

		if (!grown) {
			fputs("icbench-workload: out of memory for output\n", stderr);
			abort();
		}
		j->text = grown;
		j->capacity = capacity;
	}
	memcpy(j->text + j->length, text, n);
	j->length += n;
}

static void append_text(struct json *j, const char *text)
{
	append(j, text, strlen(text));
}

static void append_quoted(struct json *j, const char *text)
{
	append(j, "\"", 1);
	for (; *text; text++) {
		char escaped[8];

		if (*text == '"' || *text == '\\') {
			append(j, "\\", 1);
			append(j, text, 1);
		} else if ((unsigned char)*text < 0x20) {
			snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned char)*text);
			append_text(j, escaped);
		} else {
			append(j, text, 1);
		}
	}
	append(j, "\"", 1);
}

static void append_key(struct json *j, const char *key)
{
	if (j->comma)
		append(j, ",", 1);
	j->comma = true;
	if (key) {
		append_quoted(j, key);
		append(j, ":", 1);
	}
}

void json_begin_line(struct json *j, const char *type)
{
	j->length = 0;
	j->comma = false;
	append(j, "{", 1);
	json_u64(j, "schema", 1);
	json_string(j, "type", type);
}

void json_end_line(struct json *j)
{
	append(j, "}\n", 2);
}

void json_free(struct json *j)
{
	free(j->text);
	*j = (struct json){0};
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, value);

	append_key(j, key);
	append(j, digits, (size_t)n);
}

void json_u64_or_null(struct json *j, const char *key, uint64_t value, bool known)
{
	if (known)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRId64, value);

	append_key(j, key);
	append(j, digits, (size_t)n);
}

void json_double(struct json *j, const char *key, double value)
{
	char digits[40];
	int n = snprintf(digits, sizeof(digits), "%.17g", value);

	append_key(j, key);
	append(j, digits, (size_t)n);
}

void json_bool(struct json *j, const char *key, bool value)
{
	append_key(j, key);
	append_text(j, value ? "true" : "false");
}

void json_string(struct json *j, const char *key, const char *value)
{
	if (!value) {
		json_null(j, key);
		return;
	}
	append_key(j, key);
	append_quoted(j, value);
}

void json_null(struct json *j, const char *key)
{
	append_key(j, key);
	append_text(j, "null");
}

void json_open(struct json *j, const char *key, char bracket)
{
	append_key(j, key);
	append(j, &bracket, 1);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	append(j, &bracket, 1);
	j->comma = true;
}
