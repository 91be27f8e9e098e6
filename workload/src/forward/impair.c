/* SPDX-License-Identifier: BSD-3-Clause */
#include "forward/impair.h"

#include <stddef.h>

#include "base/frame.h"

static void restart(struct impair_turn *t)
{
	t->left = t->every;
}

/* Counts one frame. Returns whether it is its turn. */
static bool strikes(struct impair_turn *t)
{
	if (!t->every || --t->left)
		return false;
	t->left = t->every;
	return true;
}

void impair_init(struct impair *m, uint32_t drop, uint32_t reorder, uint32_t duplicate)
{
	*m = (struct impair){
	        .drop = {drop, drop}, .reorder = {reorder, reorder}, .duplicate = {duplicate, duplicate}};
}

bool impair_acts(const struct impair *m)
{
	return m->drop.every || m->reorder.every || m->duplicate.every;
}

void impair_restart(struct impair *m)
{
	restart(&m->drop);
	restart(&m->reorder);
	restart(&m->duplicate);
}

static void pass(struct impair *m, void *frame, struct impair_outcome *out)
{
	out->pass[out->passed++] = frame;
	if (!strikes(&m->duplicate))
		return;
	out->pass[out->passed++] = frame;
	out->duplicate[out->duplicated++] = frame;
	m->duplicated++;
}

/* Passes the held frame; `overtaken`: another frame has passed before it. */
static void release_held(struct impair *m, bool overtaken, struct impair_outcome *out)
{
	void *frame = impair_take_held(m);

	if (!frame)
		return;
	m->reordered += overtaken;
	pass(m, frame, out);
}

static void take_data(struct impair *m, void *frame, struct impair_outcome *out)
{
	if (strikes(&m->drop)) {
		out->drop[out->dropped++] = frame;
		m->dropped++;
	} else if (strikes(&m->reorder)) {
		m->held = frame; /* no frame is held: one has passed since the last was held or the counts
		                    began */
	} else {
		pass(m, frame, out);
		release_held(m, true, out);
	}
}

void impair_burst(
        struct impair *m, void *const frames[], const uint8_t kinds[], unsigned n, struct impair_outcome *out)
{
	out->passed = out->dropped = out->duplicated = out->control = 0;
	out->end_mark = false;
	for (unsigned i = 0; i < n; i++) {
		if (kinds[i] == IMPAIR_FIRST)
			impair_restart(m);
		if (kinds[i] <= IMPAIR_FIRST) {
			take_data(m, frames[i], out);
			continue;
		}
		release_held(m, false, out);
		out->pass[out->passed++] = frames[i];
		out->control++;
		if (kinds[i] == IMPAIR_END_MARK) {
			out->end_mark = true;
			impair_restart(m);
		}
	}
}

void *impair_take_held(struct impair *m)
{
	void *frame = m->held;

	m->held = NULL;
	return frame;
}

enum impair_kind impair_classify(uint8_t *l2, uint32_t bytes, struct frame_match *kept, uint16_t *stream)
{
	struct frame_label label;
	uint16_t length;
	const uint8_t *payload = frame_parse_any(l2, bytes, kept, &length);

	if (!payload || length < FRAME_STAMP_BYTES)
		return IMPAIR_DATA;
	label = frame_label(payload);
	*stream = label.stream;
	if (label.window != FRAME_WINDOW_CONTROL)
		return label.sequence ? IMPAIR_DATA : IMPAIR_FIRST;
	return label.sequence ? IMPAIR_END_MARK : IMPAIR_CONTROL;
}
