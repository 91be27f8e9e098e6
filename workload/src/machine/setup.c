/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/run.h"

/* A device that was plugged in appears within this time. An emulated machine that looks more often does
 * nothing else. */
#define PATIENCE_NS 15000000000u
#define LOOK_NS 20000000
#define INTERFACE "eth0"

static int failed(const char *what)
{
	fprintf(stderr, "icbench-workload guest: %s: %s\n", what, strerror(errno));
	return EXIT_SETUP;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return good;
}

static bool await_path(const char *path)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t deadline = clock_monotonic_ns() + PATIENCE_NS;

	while (access(path, F_OK)) {
		if (clock_monotonic_ns() > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static struct sockaddr inet_address(struct in_addr ip)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = ip};
	struct sockaddr generic;

	memcpy(&generic, &in, sizeof(generic));
	return generic;
}

static bool set_interface(int fd, struct in_addr ip, unsigned prefix, int mtu)
{
	struct in_addr mask = {htonl(prefix ? UINT32_MAX << (32 - prefix) : 0)};
	struct ifreq r = {.ifr_name = INTERFACE};

	r.ifr_mtu = mtu;
	if (ioctl(fd, SIOCSIFMTU, &r))
		return false;
	r.ifr_flags = IFF_NOARP; /* first: a change of it forgets the neighbours */
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		return false;
	r.ifr_addr = inet_address(ip);
	if (ioctl(fd, SIOCSIFADDR, &r))
		return false;
	r.ifr_netmask = inet_address(mask);
	if (ioctl(fd, SIOCSIFNETMASK, &r))
		return false;
	r.ifr_flags = IFF_UP | IFF_NOARP;
	return ioctl(fd, SIOCSIFFLAGS, &r) == 0;
}

static int set_up_link(char **argv)
{
	struct in_addr ip;
	int fd, code = EXIT_OK;

	if (!inet_aton(argv[0], &ip) || !await_path("/sys/class/net/" INTERFACE))
		return failed("there is no interface " INTERFACE);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || !set_interface(fd, ip, (unsigned)atoi(argv[1]), atoi(argv[2])))
		code = failed(INTERFACE);
	close(fd);
	return code;
}

static int add_neighbour(char **argv)
{
	struct arpreq r = {.arp_flags = ATF_COM | ATF_PERM, .arp_dev = INTERFACE};
	struct ether_addr mac;
	struct in_addr ip;
	int fd, code = EXIT_OK;

	if (!ether_aton_r(argv[0], &mac) || !inet_aton(argv[1], &ip)) {
		errno = EINVAL;
		return failed(argv[0]);
	}
	r.arp_pa = inet_address(ip);
	r.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(r.arp_ha.sa_data, &mac, sizeof(mac));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSARP, &r))
		code = failed(argv[1]);
	close(fd);
	return code;
}

static int set_driver(char **argv)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", argv[0]);
	if (!await_path(path) || !write_text(path, argv[1]))
		return failed(path);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver/unbind", argv[0]);
	if (!write_text(path, argv[0]) && errno != ENOENT)
		return failed(path);
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s/bind", argv[1]);
	return write_text(path, argv[0]) ? EXIT_OK : failed(path);
}

static int add_pages(char **argv)
{
	return write_text("/proc/sys/vm/nr_hugepages", argv[0]) ? EXIT_OK : failed("huge pages");
}

static int be_ready(char **argv)
{
	(void)argv;
	return EXIT_OK;
}

int setup(int argc, char **argv)
{
	static const struct {
		const char *name;
		int words;
		int (*act)(char **words);
	} ACTIONS[] = {{"ready", 0, be_ready}, {"pages", 1, add_pages}, {"link", 3, set_up_link},
	        {"neighbour", 2, add_neighbour}, {"driver", 2, set_driver}};

	for (size_t i = 0; argc && i < sizeof(ACTIONS) / sizeof(ACTIONS[0]); i++)
		if (strcmp(argv[0], ACTIONS[i].name) == 0 && argc == ACTIONS[i].words + 1)
			return ACTIONS[i].act(argv + 1);
	fputs("icbench-workload guest: it is for the inside of a virtual machine\n", stderr);
	return EXIT_USAGE;
}
