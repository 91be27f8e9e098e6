/* SPDX-License-Identifier: BSD-3-Clause */
/* What AF_PACKET sockets have in common: how they are opened, what they hear, and what is told beside a
 * frame. */
#ifndef ICBENCH_PACKET_SOCKET_H
#define ICBENCH_PACKET_SOCKET_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* Room for what the kernel tells beside a frame, with PACKET_AUXDATA. */
#define PACKET_CONTROL_BYTES CMSG_SPACE(sizeof(struct tpacket_auxdata))

/* A raw socket of more flags, which hears nothing until it is bound: a filter can be put in place before.
 * -1 and a sentence in err on failure. */
int packet_open(int flags, char *err, size_t err_len);

/* The index of an interface. 0 and a sentence in err if there is none. */
int packet_interface(const char *name, char *err, size_t err_len);

/* Keeps out what the interface itself sends: it comes back on some kernels in spite of
 * PACKET_IGNORE_OUTGOING. */
bool packet_refuse_outgoing(int fd);

/* What was told beside a frame; NULL if nothing was. */
const struct tpacket_auxdata *packet_auxiliary(struct msghdr *m);

/* Frames that the socket has lost for want of room since this was asked last. */
uint64_t packet_missed(int fd);

#endif
