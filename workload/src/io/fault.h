/* SPDX-License-Identifier: BSD-3-Clause */
/* A backend in front of another that drops, duplicates or reorders each N-th measuring frame on its way out,
 * while it tells the sender that all went well: for tests of the accounts.
 */
#ifndef ICBENCH_IO_FAULT_H
#define ICBENCH_IO_FAULT_H

#include "io/io.h"

/* Takes over inner; *ops becomes the wrapping backend's. *give_up, when it becomes true, ends the waiting for
 * a full port. Returns NULL and a sentence, inner closed, if memory is short. One at a time in a process. */
struct io *io_fault_wrap(const struct io_ops **ops, struct io *inner, const struct options *o,
        const volatile bool *give_up, char *err, size_t err_len);

#endif
