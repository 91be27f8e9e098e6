/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/shape.h"

uint64_t shape_bytes(const struct shape *s, uint64_t frames, uint32_t otherwise)
{
	uint64_t whole = 0, rest = 0;

	if (!s->cycle)
		return frames * otherwise;
	for (uint32_t i = 0; i < s->cycle; i++) {
		whole += s->sizes[i];
		rest += i < frames % s->cycle ? s->sizes[i] : 0;
	}
	return frames / s->cycle * whole + rest;
}
