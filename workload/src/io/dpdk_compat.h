/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between the supported versions of DPDK (22.11 and later). */
#ifndef ICBENCH_DPDK_COMPAT_H
#define ICBENCH_DPDK_COMPAT_H

#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "DPDK 22.11 or later is needed"
#endif

#endif
