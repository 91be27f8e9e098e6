/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the users of AF_PACKET sockets: opening, filtering, and the data that the kernel passes with a
 * frame.
 */
#ifndef ICBENCH_PACKET_SOCKET_H
#define ICBENCH_PACKET_SOCKET_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* Room for the data that the kernel passes with a frame (PACKET_AUXDATA). */
#define PACKET_CONTROL_BYTES CMSG_SPACE(sizeof(struct tpacket_auxdata))

/* Opens a raw socket with additional flags. It receives nothing until it is bound, so a filter can be
 * attached first. Returns -1 and a sentence in err on failure. */
int packet_open(int flags, char *err, size_t err_len);

/* Returns the index of an interface, 0 and a sentence in err if there is none. */
int packet_interface(const char *name, char *err, size_t err_len);

/* Filters out frames that the interface itself sends: some kernels deliver them in spite of
 * PACKET_IGNORE_OUTGOING. */
bool packet_refuse_outgoing(int fd);

/* Returns the data passed with a frame, NULL if there is none. */
const struct tpacket_auxdata *packet_auxiliary(struct msghdr *m);

/* Returns the frames that the socket has lost for lack of room since the last call. */
uint64_t packet_missed(int fd);

#endif
