/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives lent frames the properties that their sequence numbers determine (base/flow_pattern.h, base/acl.h).
 * Frames without a pattern cost nothing.
 */
#ifndef ICBENCH_PREPARE_H
#define ICBENCH_PREPARE_H

#include "io/io.h"

/* Whether sizes or flows differ between frames, or frames go elsewhere than control frames. */
static inline bool prepare_needed(const struct io_config *c)
{
	return c->pattern.cycle || pattern_has_flows(&c->pattern) || c->routes.count;
}

/* Sets sizes and flows of the n frames lent last to those of the sequence numbers first, first + 1 and so
 * on. */
void prepare_frames(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload[],
        unsigned n, uint64_t first);

/* Writes what the ACL matches into frames that it is to drop, and removes it from the others. After
 * everything else that fills payloads. */
void prepare_acl(const struct io_config *c, uint8_t *payload[], unsigned n, uint64_t first);

/* The same for one control frame, which has the packet size, belongs to flow 0, and is not dropped. */
void prepare_control(const struct io_config *c, const struct io_ops *ops, struct io *io, uint8_t *payload);

/* Writes the UDP or TCP checksum of a stamped frame, with --check-payload or if the headers require one. */
void prepare_checksum(const struct io_config *c, const struct io_ops *ops, uint8_t *payload);

#endif
