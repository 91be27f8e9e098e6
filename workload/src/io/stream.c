/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

static struct sockaddr_in place(struct in_addr ip, uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = ip};
}

static int failed(int fd, const char *what, struct in_addr ip, uint16_t port, char *err, size_t err_len)
{
	int error = errno;
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &ip, text, sizeof(text));
	snprintf(err, err_len, "cannot %s %s, port %u: %s", what, text, port, strerror(error));
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool tune(int fd, bool datagrams)
{
	const int on = 1;

	if (!datagrams && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return false;
	return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

int stream_connect(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len)
{
	struct sockaddr_in server = place(ip, port);
	int fd = socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 || !tune(fd, datagrams))
		return failed(fd, "connect to", ip, port, err, err_len);
	return fd;
}

int stream_listen(struct in_addr ip, uint16_t port, bool datagrams, char *err, size_t err_len)
{
	const int on = 1;
	struct sockaddr_in own = place(ip, port);
	int fd = socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	        bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0 || !tune(fd, datagrams) ||
	        (!datagrams && listen(fd, BACKLOG) < 0))
		return failed(fd, "listen on", ip, port, err, err_len);
	return fd;
}

int stream_accept(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && !tune(fd, false)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool later(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS;
}

long stream_send(int fd, const void *data, size_t n)
{
	ssize_t taken = send(fd, data, n, MSG_NOSIGNAL);

	if (taken >= 0)
		return taken;
	return later(errno) ? 0 : -1;
}

long stream_receive(int fd, void *data, size_t n)
{
	ssize_t came = recv(fd, data, n, 0);

	if (came > 0)
		return came;
	if (came == 0)
		errno = ECONNRESET;
	else if (later(errno))
		return 0;
	return -1;
}
