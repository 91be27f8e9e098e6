/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking sockets for requests and answers: TCP connections and connected UDP sockets. */
#ifndef ICBENCH_STREAM_H
#define ICBENCH_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a socket connected to the server, or -1 and a sentence in err. */
int stream_connect(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len);

/* Returns a socket on which a server waits for connections or datagrams, or -1 and a sentence in err. */
int stream_listen(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len);

/* Returns the next connection of a listening socket, or -1. */
int stream_accept(int listening);

/* Sends without waiting. Returns how many bytes were taken, 0 if there is no room, or -1 with errno. */
long stream_send(int fd, const void *data, size_t n);

/* Receives without waiting. Returns how many bytes, 0 if there are none, or -1 with errno. ECONNRESET: the
 * other end has closed the connection (or sent an empty datagram). */
long stream_receive(int fd, void *data, size_t n);

#endif
