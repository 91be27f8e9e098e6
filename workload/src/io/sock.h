/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the back ends with sockets: buffers, message vectors, socket options, and sending and receiving a
 * burst with one call for each frame or for the burst.
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

/* Send side: `slots` buffers in a ring. Frames that are lent and not yet taken are [head, head + lent). The
 * vectors are twice as long as the ring, so that a burst is always contiguous. */
struct sock_tx {
	unsigned slots, head, lent;
	size_t stride, length; /* bytes between buffers; bytes sent of each */
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
	bool prompt; /* deliver each frame as it arrives, because its sender waits for the answer */
	int flags;   /* MSG_DONTWAIT or 0 */
	uint32_t ring;
	char interface[IF_NAMESIZE];
	struct sock_tx tx;
	struct sock_rx rx;
};

/* Allocates buffers for frames of `length` bytes; fd stays -1. Returns false and a sentence in err if memory
 * is short. */
bool sock_init(struct sock *s, const struct io_config *c, size_t tx_length, char *err, size_t err_len);
void sock_close(struct sock *s);

/* Operations (io.h) of a back end whose struct io, `size` bytes, begins with a struct sock. set_up()
 * initializes that, or writes a sentence to err. */
struct io *sock_io_open(size_t size, bool (*set_up)(struct sock *, const struct io_config *, char *, size_t),
        const struct io_config *c, char *err, size_t err_len);
void sock_io_close(struct io *io);
void sock_io_facts(struct io *io, struct io_facts *facts);
bool sock_io_link_up(struct io *io);
/* Does nothing: received buffers stay with the socket. */
void sock_io_rx_release(struct io *io);
void sock_io_wait(struct io *io, unsigned events, uint64_t ns);
unsigned sock_io_tx_acquire(struct io *io, uint8_t *payload[], unsigned n);
int sock_io_tx_commit(struct io *io, unsigned n);
void sock_io_tx_resize(struct io *io, unsigned i, uint32_t bytes);

/* Sleeps until a descriptor is ready for one of the events (io.h), for at most that many nanoseconds. */
void sock_wait(int fd, unsigned events, uint64_t ns);

/* Returns the bytes that a socket's buffer needs for --ring frames, as the kernel counts them. */
int sock_buffer_bytes(const struct io_config *c);

/* Sets buffer sizes, and timeouts of blocking calls. */
void sock_tune(struct sock *s, const struct io_config *c);

/* Reserves `bytes` bytes before each received frame. Called once, before the first. */
void sock_rx_leave_room(struct sock_rx *rx, uint32_t bytes);

/* Checks that the interface exists and that its MTU allows the packet size. */
bool sock_check_mtu(int fd, const char *interface, const struct io_config *c, char *err, size_t err_len);
bool sock_link_up(const struct sock *s);

uint8_t *sock_tx_buffer(const struct sock *s, unsigned slot);
/* Lends up to n transmit buffers, those already lent first. Returns how many. */
unsigned sock_tx_lend(struct sock *s, uint8_t *buffers[], unsigned n);
/* Sets the bytes to be sent of the i-th lent buffer. */
void sock_tx_resize(struct sock *s, unsigned i, size_t length);
/* Sends the first n lent buffers, like io_ops.tx_commit(). */
int sock_tx_send(struct sock *s, unsigned n);
/* Marks the first n lent buffers as sent. */
void sock_tx_taken(struct sock_tx *tx, unsigned n);
/* Sends messages. Returns how many were taken, or -1. */
int sock_send(struct sock *s, struct mmsghdr *messages, unsigned n);
/* Receives up to n messages into the vectors of rx. Returns how many, or -1. */
int sock_receive(struct sock *s, unsigned n);

#endif
