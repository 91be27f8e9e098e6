/* SPDX-License-Identifier: BSD-3-Clause */
/* What AF_PACKET sockets for frames of any kind have in common: what they hear, and what is told beside a
 * frame.
 */
#ifndef ICBENCH_PACKET_SOCKET_H
#define ICBENCH_PACKET_SOCKET_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Room for what the kernel tells beside a frame, with PACKET_AUXDATA. */
#define PACKET_CONTROL_BYTES CMSG_SPACE(sizeof(struct tpacket_auxdata))

/* Keeps out what the interface itself sends: it comes back on some kernels in spite of
 * PACKET_IGNORE_OUTGOING. */
bool packet_refuse_outgoing(int fd);

/* What was told beside a frame; NULL if nothing was. */
const struct tpacket_auxdata *packet_auxiliary(struct msghdr *m);

/* Frames that the socket has lost for want of room since this was asked last. */
uint64_t packet_missed(int fd);

#endif
