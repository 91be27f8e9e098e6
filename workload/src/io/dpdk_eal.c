/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_intr_*(), which registering a callback requires, are experimental in DPDK 22.11. */
#define ALLOW_EXPERIMENTAL_API

#include "io/dpdk_eal.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_log.h>

#include "base/clock.h"

#define EAL_ARGS_MAX 64
#define DEVICE "--vdev="
#define AWAIT_MS 10000
/* A server binds its socket first and listens a moment later. */
#define CONNECT_ATTEMPTS 20
#define PARK_STEPS 10000

bool dpdk_fail(char *err, size_t err_len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, err_len, format, args);
	va_end(args);
	return false;
}

static struct clock eal_clock; /* anchored before EAL starts */

/* Replaces get_tsc_freq() of EAL's archives (the linker's --wrap), which sleeps for 0.1 s. Only EAL's timers
 * need the frequency, and most of our calibration time has passed when this is called. */
uint64_t __wrap_get_tsc_freq(void);
uint64_t __wrap_get_tsc_freq(void)
{
	clock_calibrate(&eal_clock);
	return eal_clock.hz;
}

/* Keeps stdout for JSON lines: EAL prints its usage there, and a driver might print, too. */
static int eal_init_quietly(int argc, char **argv)
{
	int saved, ret;

	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	if (saved >= 0)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	ret = rte_eal_init(argc, argv);
	fflush(stdout);
	if (saved >= 0) {
		dup2(saved, STDOUT_FILENO);
		close(saved);
	}
	return ret;
}

/* Returns the device named by its PCI address (-a ADDRESS), or NULL. */
static const char *named_device(int argc, char **argv)
{
	for (int i = 0; i + 1 < argc; i++)
		if (strcmp(argv[i], "-a") == 0)
			return argv[i + 1];
	return NULL;
}

/* Reads an identifier of a PCI device, such as 8086 from the file "vendor". Returns 0 if it cannot be
 * read. */
static unsigned int pci_identifier(const char *address, const char *file)
{
	char path[PATH_MAX];
	unsigned int found = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", address, file);
	in = fopen(path, "r");
	if (!in)
		return 0;
	if (fscanf(in, "%x", &found) != 1)
		found = 0;
	fclose(in);
	return found;
}

/* Replaces the first virtual device among the arguments and returns it, or NULL. Its replacement keeps EAL
 * from choosing physical addresses, which virtual devices cannot use. */
static const char *take_device(int argc, char **argv)
{
	static char virtual_addresses[] = "--iova-mode=va";

	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], DEVICE, strlen(DEVICE)) == 0) {
			const char *device = argv[i] + strlen(DEVICE);

			argv[i] = virtual_addresses;
			return device;
		}
	return NULL;
}

static bool is_socket(const char *path)
{
	struct stat found;

	return stat(path, &found) == 0 && S_ISSOCK(found.st_mode);
}

static bool make_device(const char *device, const char *await_socket, char *err, size_t err_len)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (unsigned ms = 0; !is_socket(await_socket); ms++) {
		if (ms == AWAIT_MS)
			return dpdk_fail(err, err_len, "%s did not come within %d s; is the other end there?",
			        await_socket, AWAIT_MS / 1000);
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < CONNECT_ATTEMPTS; i++) {
		nanosleep(&pause, NULL);
		if (rte_dev_probe(device) == 0)
			return true;
	}
	return dpdk_fail(err, err_len, "DPDK did not make %s: see the log above", device);
}

bool dpdk_eal_start(const struct io_config *c, char *err, size_t err_len)
{
	const int eal_argc = c->eal_argc;
	/* EAL keeps pointers into its arguments. */
	static char program[] = "icbench-workload";
	static char *argv[EAL_ARGS_MAX + 2];
	const char *device, *awaiting = NULL;

	if (eal_argc > EAL_ARGS_MAX)
		return dpdk_fail(err, err_len, "%d EAL arguments are too many: %d is the limit", eal_argc,
		        EAL_ARGS_MAX);
	argv[0] = program;
	for (int i = 0; i < eal_argc; i++)
		argv[i + 1] = c->eal_argv[i];
	argv[eal_argc + 1] = NULL;
	if (c->await_socket && !(awaiting = take_device(eal_argc + 1, argv)))
		return dpdk_fail(
		        err, err_len, "--await needs a virtual device: name one by %s after --", DEVICE);
	/* A virtio-user port writes to its back end while it closes, even if that has ended. */
	signal(SIGPIPE, SIG_IGN);
	rte_openlog_stream(stderr);
	clock_anchor(&eal_clock);
	if (eal_init_quietly(eal_argc + 1, argv) < 0) {
		if (rte_errno == ENOMEM)
			return dpdk_fail(err, err_len,
			        "EAL found too little memory: reserve huge pages, or ask for less with -m "
			        "after --");
		return dpdk_fail(err, err_len, "EAL did not start (%s): check the arguments after --",
		        rte_strerror(rte_errno));
	}
	if (awaiting && !make_device(awaiting, c->await_socket, err, err_len)) {
		rte_eal_cleanup();
		return false;
	}
	if (rte_eth_dev_count_avail())
		return true;
	rte_eal_cleanup();
	device = named_device(eal_argc, c->eal_argv);
	if (device)
		return dpdk_fail(err, err_len,
		        "DPDK has no driver for %s (%04x:%04x), or may not use it: install the one of its "
		        "card (on Debian one of librte-net-*), and see the log above",
		        device, pci_identifier(device, "vendor"), pci_identifier(device, "device"));
	return dpdk_fail(err, err_len,
	        "EAL found no port: name one after --, for example --vdev=net_memif0,role=client, "
	        "and see the log above if one was named");
}

static atomic_bool parked;

static void park(void *unused)
{
	RTE_SET_USED(unused);
	atomic_store(&parked, true);
	for (;;)
		pause();
}

/* rte_eal_cleanup() unmaps the memory of interrupt sources, but leaves their thread running and wakes it. The
 * thread reads its list again, in which a memif server has left its listener, and crashes. So the thread is
 * kept in a callback until the process ends. An alarm's callback would not do, because the clean-up waits for
 * those. */
static void park_interrupts(void)
{
	const struct timespec step = {.tv_nsec = 100000};
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int fd = eventfd(1, EFD_CLOEXEC);

	if (!handle || fd < 0 || rte_intr_fd_set(handle, fd) ||
	        rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) ||
	        rte_intr_callback_register(handle, park, NULL))
		return;
	for (int i = 0; i < PARK_STEPS && !atomic_load(&parked); i++)
		nanosleep(&step, NULL);
}

void dpdk_eal_stop(void)
{
	park_interrupts();
	rte_eal_cleanup();
}
