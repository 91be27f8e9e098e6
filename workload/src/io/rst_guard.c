/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rst_guard.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Segments with a lower TTL are dropped silently; ours have 64. */
#define HOPS_MIN 255

bool rst_guard_open(const struct io_config *c, int *fd, char *err, size_t err_len)
{
	const struct frame_header *h = &c->ends.header;
	const struct sockaddr_in local = {
	        .sin_family = AF_INET, .sin_port = htons(c->ends.udp_port), .sin_addr = c->ends.local_ip};
	const int hops = HOPS_MIN;

	*fd = -1;
	/* IPv6 is off on measured links, and no address belongs to a tag's network. */
	if (!h->tcp || h->ipv6 || h->vlan)
		return true;
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd >= 0 && setsockopt(*fd, IPPROTO_IP, IP_MINTTL, &hops, sizeof(hops)) == 0 &&
	        bind(*fd, (const struct sockaddr *)&local, sizeof(local)) == 0 && listen(*fd, 1) == 0)
		return true;
	if (*fd >= 0 &&
	        errno == EADDRNOTAVAIL) { /* not an address of this kernel, which does not answer then */
		close(*fd);
		*fd = -1;
		return true;
	}
	snprintf(err, err_len, "TCP port %u cannot be kept silent: %s; choose another --port",
	        c->ends.udp_port, strerror(errno));
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return false;
}
