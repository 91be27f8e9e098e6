/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes lent frames what their sequence numbers say (base/shape.h). Frames that are all alike cost nothing.
 */
#ifndef ICBENCH_DRESS_H
#define ICBENCH_DRESS_H

#include "io/io.h"

/* Whether frames differ at all. */
static inline bool dress_needed(const struct options *o)
{
	return o->shape.cycle || shape_has_flows(&o->shape);
}

/* Gives the n frames lent last the lengths and flows of the sequence numbers first, first + 1 and so on. */
void dress_frames(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload[],
        unsigned n, uint64_t first);

/* Gives those of them that are of denied flows (base/denied.h) what they are denied for, and takes it from
 * the others. After all that fills payloads. */
void dress_denied(const struct options *o, uint8_t *payload[], unsigned n, uint64_t first);

/* The same for one control frame, which has the packet size, is of flow 0, and is not denied. */
void dress_control(const struct options *o, const struct io_ops *ops, struct io *io, uint8_t *payload);

/* Gives a stamped frame its UDP or TCP checksum, with --touch or where it needs one. */
void dress_seal(const struct options *o, const struct io_ops *ops, uint8_t *payload);

#endif
