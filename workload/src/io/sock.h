/* SPDX-License-Identifier: BSD-3-Clause */
/* What the socket backends share: buffers, message vectors, socket options, sending and receiving a burst
 * with one call a frame or one call a burst.
 */
#ifndef ICBENCH_SOCK_H
#define ICBENCH_SOCK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "io/io.h"

struct io_config;

/* Send side: `slots` buffers in a ring. Frames lent and not yet taken are [head, head + lent). The vectors
 * are twice as long as the ring, so that a burst is always contiguous in them. */
struct sock_tx {
	unsigned slots, head, lent;
	size_t stride, length; /* bytes between buffers, bytes sent of each */
	uint8_t *buffers;
	struct mmsghdr *messages;
	struct iovec *vectors;
};

struct sock_rx {
	unsigned slots;
	size_t stride, capacity;
	uint8_t *buffers;
	struct mmsghdr *messages;
	struct iovec *vectors;
};

struct sock {
	int fd;
	bool mmsg;
	bool prompt; /* hand over each frame as it comes, since somebody waits for an answer */
	int flags;   /* MSG_DONTWAIT or 0 */
	uint32_t ring;
	char interface[IF_NAMESIZE];
	struct sock_tx tx;
	struct sock_rx rx;
};

/* Buffers for frames of `length` bytes; returns false and a sentence if memory is short. fd stays -1. */
bool sock_init(struct sock *s, const struct io_config *c, size_t tx_length, char *err, size_t err_len);
void sock_close(struct sock *s);

/* Operations (io.h) of a backend whose struct io, `size` bytes, begins with a struct sock; set_up() makes
 * that ready, or writes a sentence. */
struct io *sock_io_open(size_t size, bool (*set_up)(struct sock *, const struct io_config *, char *, size_t),
        const struct io_config *c, char *err, size_t err_len);
void sock_io_close(struct io *io);
void sock_io_facts(struct io *io, struct io_facts *facts);
bool sock_io_link_up(struct io *io);
/* Its buffers are its own: there is nothing to give back. */
void sock_io_rx_release(struct io *io);

/* Buffer sizes, timeouts of blocking calls. */
void sock_tune(struct sock *s, const struct io_config *c);

/* Leaves so many bytes before each frame that comes. Once, before the first. */
void sock_rx_leave_room(struct sock_rx *rx, uint32_t bytes);

/* Refuses a packet size above the interface's MTU, and an interface that does not exist. */
bool sock_check_mtu(int fd, const char *interface, const struct io_config *c, char *err, size_t err_len);
bool sock_link_up(const struct sock *s);

uint8_t *sock_tx_buffer(const struct sock *s, unsigned slot);
/* Lends up to n transmit buffers, those lent before first; returns how many. */
unsigned sock_tx_lend(struct sock *s, uint8_t *buffers[], unsigned n);
/* Gives the i-th lent buffer that many bytes to be sent. */
void sock_tx_resize(struct sock *s, unsigned i, size_t length);
/* Sends the first n of the lent. As io_ops.tx_commit(). */
int sock_tx_send(struct sock *s, unsigned n);
/* The first n of the lent have left. */
void sock_tx_taken(struct sock_tx *tx, unsigned n);
/* Sends messages of any vector; returns how many were taken, or -1. */
int sock_send(struct sock *s, struct mmsghdr *messages, unsigned n);
/* Receives up to n messages into the rx vectors; returns how many, or -1. */
int sock_receive(struct sock *s, unsigned n);

#endif
