/* SPDX-License-Identifier: BSD-3-Clause */
/* A back end in front of another one that drops, duplicates or reorders every N-th measuring frame on its way
 * out and reports success to the sender, for tests of the accounts.
 */
#ifndef ICBENCH_IO_FAULT_H
#define ICBENCH_IO_FAULT_H

#include "io/io.h"

enum fault_kind { FAULT_NONE, FAULT_DROP, FAULT_DUPLICATE, FAULT_REORDER };

struct fault {
	enum fault_kind kind;
	uint32_t every; /* frames */
};

/* Takes over inner; *ops becomes the wrapping back end's. *give_up ends the wait for a full port when it
 * becomes true. Returns NULL and a sentence in err, with inner closed, if memory is short. One at a time in a
 * process. */
struct io *io_fault_wrap(const struct io_ops **ops, struct io *inner, const struct io_config *c,
        const struct fault *fault, const volatile bool *give_up, char *err, size_t err_len);

#endif
