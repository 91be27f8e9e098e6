/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain sockets of requests and answers: TCP connections, and UDP sockets that are connected. None blocks. */
#ifndef ICBENCH_STREAM_H
#define ICBENCH_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A socket that is connected to the server, or -1 and a sentence in err. */
int stream_connect(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len);

/* A socket on which a server waits for connections, or for datagrams; or -1 and a sentence in err. */
int stream_listen(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len);

/* The next connection of a listening socket, or -1. */
int stream_accept(int listening);

/* Sends without waiting. Returns how many bytes were taken, 0 if there is no room, or -1 with errno. */
long stream_send(int fd, const void *data, size_t n);

/* Receives what is there. Returns how many bytes, 0 if there is nothing, or -1 with errno: ECONNRESET where
 * the other end has closed the connection (of a datagram without bytes, too). */
long stream_receive(int fd, void *data, size_t n);

#endif
