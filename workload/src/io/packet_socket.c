/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

int packet_open(int flags, char *err, size_t err_len)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		snprintf(err, err_len, "no raw socket: %s%s", strerror(errno),
		        errno == EPERM ? " (it needs CAP_NET_RAW)" : "");
	return fd;
}

int packet_interface(const char *name, char *err, size_t err_len)
{
	unsigned index = if_nametoindex(name);

	if (!index)
		snprintf(err, err_len, "there is no interface '%.60s' here", name);
	return (int)index;
}

bool packet_refuse_outgoing(int fd)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, 0),
	        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	int on = 1;

	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

const struct tpacket_auxdata *packet_auxiliary(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			return (const struct tpacket_auxdata *)(void *)CMSG_DATA(c);
	return NULL;
}

uint64_t packet_missed(int fd)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);

	/* The kernel resets its count on each read. */
	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0 ? stats.tp_drops : 0;
}
