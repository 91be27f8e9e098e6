/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes lent frames what their sequence numbers say (base/pattern.h). Frames that are all alike cost nothing.
 */
#ifndef ICBENCH_PREPARE_H
#define ICBENCH_PREPARE_H

#include "io/io.h"

/* Whether frames differ at all. */
static inline bool prepare_needed(const struct io_config *c)
{
	return c->pattern.cycle || pattern_has_flows(&c->pattern);
}

/* Gives the n frames lent last the lengths and flows of the sequence numbers first, first + 1 and so on. */
void prepare_frames(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload[],
        unsigned n, uint64_t first);

/* Gives those of them that are of denied flows (base/denied.h) what they are denied for, and takes it from
 * the others. After all that fills payloads. */
void prepare_denied(const struct io_config *c, uint8_t *payload[], unsigned n, uint64_t first);

/* The same for one control frame, which has the packet size, is of flow 0, and is not denied. */
void prepare_control(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload);

/* Gives a stamped frame its UDP or TCP checksum, with --touch or where it needs one. */
void prepare_checksum(const struct io_config *c, const struct io_ops *ops, uint8_t *payload);

#endif
