/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/backends.h"

#include <stdio.h>
#include <string.h>

extern const struct io_ops io_udp, io_gso, io_raw, io_packet, io_null, io_tap;

#ifdef HAVE_XDP
extern const struct io_ops io_xdp;
#define XDP_OPS &io_xdp
#else
#define XDP_OPS NULL
#endif

#ifdef HAVE_DPDK
#include <rte_version.h>

extern const struct io_ops io_dpdk, io_dpdk_queues;
#define DPDK_OPS &io_dpdk
#define DPDK_QUEUES_OPS &io_dpdk_queues
#define DPDK_VERSION rte_version()
#else
#define DPDK_OPS NULL
#define DPDK_QUEUES_OPS NULL
#define DPDK_VERSION NULL
#endif

static bool xdp_fits(const struct io_config *c, char *err, size_t err_len)
{
	if (!c->ends.header.vlan)
		return true;
	snprintf(err, err_len,
	        "--header with a VLAN tag needs -R %.60s: an AF_XDP socket may not receive the tag",
	        c->interface);
	return false;
}

static bool dpdk_fits(const struct io_config *c, char *err, size_t err_len)
{
	if (c->burst <= c->ring)
		return true;
	snprintf(err, err_len, "--burst %u is larger than the ring of %u descriptors; choose a larger --ring",
	        c->burst, c->ring);
	return false;
}

static bool tap_fits(const struct io_config *c, char *err, size_t err_len)
{
	if (c->interface && !c->blocking && !c->role.forwards)
		return true;
	snprintf(err, err_len,
	        c->blocking ? "--io tap has no blocking calls: take --wait interrupt instead of --blocking"
	                    : "--io tap needs the character device of one macvtap link: -R /dev/tapN");
	return false;
}

const struct io_backend io_backends[] = {
        {"udp", IO_SOCKET | IO_SHARED_QUEUE, &io_udp, NULL, NULL},
        {"udp", IO_SOCKET | IO_SHARED_QUEUE | IO_SEGMENTS, &io_gso, NULL, NULL},
        {"raw", IO_SOCKET | IO_SHARED_QUEUE | IO_HEADERS, &io_raw, NULL, NULL},
        {"raw", IO_SOCKET | IO_SHARED_QUEUE | IO_HEADERS | IO_ANY_FRAME, &io_packet, NULL, NULL},
        {"xdp", IO_SOCKET | IO_HEADERS, XDP_OPS, "AF_XDP; install libxdp-dev", xdp_fits},
        {"dpdk", IO_HEADERS | IO_ANY_FRAME | IO_EAL, DPDK_OPS, "DPDK; install libdpdk-dev", dpdk_fits},
        {"dpdk", IO_HEADERS | IO_QUEUES | IO_EAL, DPDK_QUEUES_OPS, "DPDK; install libdpdk-dev", dpdk_fits},
        {"tap", IO_SHARED_QUEUE | IO_HEADERS | IO_ANY_FRAME | IO_BY_NAME, &io_tap, NULL, tap_fits},
        {"null", IO_HEADERS | IO_LOCAL | IO_BY_NAME, &io_null, NULL, NULL},
        {NULL, 0, NULL, NULL, NULL},
};

const struct io_backend *io_backend_find(const char *name, unsigned wanted)
{
	const struct io_backend *best = NULL;

	for (const struct io_backend *b = io_backends; b->name; b++)
		if (strcmp(b->name, name) == 0 && (!best || __builtin_popcount(b->flags & wanted) >
		                                                    __builtin_popcount(best->flags & wanted)))
			best = b;
	return best;
}

const char *io_dpdk_version(void)
{
	return DPDK_VERSION;
}
