/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into sockperf, whose UDP sockets are connected then, as the workload's are.
 *
 * Otherwise the kernel looks for a route with each frame. On a processor from AMD that was 1.4 of 7.9 us of a
 * round trip over a veth pair, on one from Intel 0.2 of 4.5. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define SOCKETS 1024

typedef ssize_t (*sendto_fn)(
        int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t len);

ssize_t sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
	static bool connected[SOCKETS];
	static sendto_fn original;

	if (!original)
		original = (sendto_fn)dlsym(RTLD_NEXT, "sendto");
	if (to && fd >= 0 && fd < SOCKETS && (connected[fd] || connect(fd, to, len) == 0)) {
		connected[fd] = true;
		return original(fd, data, n, flags, NULL, 0);
	}
	return original(fd, data, n, flags, to, len);
}
