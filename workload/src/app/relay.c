/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command in a virtual machine as if it ran here: its input, output, errors, signals and exit code. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/apps.h"
#include "base/clock.h"
#include "machine/channel.h"
#include "run/run.h"

/* The clocks are compared so often. The quickest answer is taken. */
#define CLOCK_ROUNDS 16

static struct channel port;

static int open_port(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* Waits for a message of this connection. Returns false if the machine is gone. */
static bool await_message(struct message *m)
{
	for (;;) {
		while (channel_next(&port, m)) {
			if (m->id == port.id)
				return true;
			channel_drop(&port, m);
		}
		if (!channel_fill(&port))
			return false;
	}
}

/* Measures how far the host's CLOCK_MONOTONIC is ahead of the guest's, in ns. */
static bool compare_clocks(int64_t *offset)
{
	uint64_t best = UINT64_MAX;
	struct message m;

	for (int i = 0; i < CLOCK_ROUNDS; i++) {
		uint64_t asked = clock_monotonic_ns(), there, took;

		if (!channel_send(&port, CHANNEL_TIME, NULL, 0) || !await_message(&m))
			return false;
		took = clock_monotonic_ns() - asked;
		if (m.kind == CHANNEL_TIME && m.length == sizeof(there) && took < best) {
			memcpy(&there, m.bytes, sizeof(there));
			best = took;
			*offset = (int64_t)(asked + took / 2 - there);
		}
		channel_drop(&port, &m);
	}
	return true;
}

static bool send_command(int64_t offset, char **words)
{
	static uint8_t bytes[CHANNEL_MAX];
	size_t used = sizeof(offset);

	memcpy(bytes, &offset, sizeof(offset));
	for (; *words; words++) {
		size_t length = strlen(*words) + 1;

		if (used + length > sizeof(bytes)) {
			fputs("icbench-workload relay: the command is too long\n", stderr);
			return false;
		}
		memcpy(bytes + used, *words, length);
		used += length;
	}
	return channel_send(&port, CHANNEL_RUN, bytes, used);
}

static void write_out(int fd, const struct message *m)
{
	for (uint32_t at = 0; at < m->length;) {
		ssize_t n = write(fd, m->bytes + at, m->length - at);

		if (n < 0 && errno != EINTR)
			return; /* nobody reads it */
		at += n > 0 ? (uint32_t)n : 0;
	}
}

/* Ends by a signal, without a core file. */
_Noreturn static void die(int number)
{
	const struct rlimit none = {0, 0};
	sigset_t one;

	setrlimit(RLIMIT_CORE, &none);
	signal(number, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(number);
	_exit(128 + number);
}

static void end_as(int32_t status)
{
	if (WIFSIGNALED(status))
		die(WTERMSIG(status));
	exit(WEXITSTATUS(status));
}

/* Handles the messages that have come; does not return after the command's end. */
static void take_messages(void)
{
	struct message m;
	int32_t status;

	while (channel_next(&port, &m)) {
		if (m.id == port.id && m.kind == CHANNEL_OUTPUT)
			write_out(STDOUT_FILENO, &m);
		if (m.id == port.id && m.kind == CHANNEL_ERROR)
			write_out(STDERR_FILENO, &m);
		if (m.id == port.id && m.kind == CHANNEL_EXIT && m.length == sizeof(status)) {
			memcpy(&status, m.bytes, sizeof(status));
			end_as(status);
		}
		channel_drop(&port, &m);
	}
}

static bool pass_input(struct pollfd *input)
{
	uint8_t bytes[4096];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		input->fd = -1;
	return channel_send(&port, CHANNEL_INPUT, bytes, n > 0 ? (size_t)n : 0);
}

static bool pass_signal(int signals)
{
	struct signalfd_siginfo info;
	int32_t number;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return true;
	number = (int32_t)info.ssi_signo;
	return channel_send(&port, CHANNEL_SIGNAL, &number, sizeof(number));
}

/* A machine that is gone takes its processes with it, as a container does. */
_Noreturn static void machine_gone(void)
{
	fputs("icbench-workload relay: the virtual machine has ended\n", stderr);
	die(SIGKILL);
}

int app_relay(int argc, char **argv)
{
	struct pollfd fds[3] = {
	        {.events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	int64_t offset = 0;
	sigset_t passed;

	if (argc < 3) {
		fputs("icbench-workload relay: a socket, a CPU and a command are needed\n", stderr);
		return EXIT_USAGE;
	}
	port.fd = open_port(argv[0]);
	if (port.fd < 0) {
		fprintf(stderr, "icbench-workload relay: %s: %s\n", argv[0], strerror(errno));
		return EXIT_SETUP;
	}
	port.id = (uint32_t)getpid();
	signal(SIGPIPE, SIG_IGN);
	if (!compare_clocks(&offset))
		machine_gone();
	sigemptyset(&passed);
	sigaddset(&passed, SIGTERM);
	sigaddset(&passed, SIGINT);
	sigprocmask(SIG_BLOCK, &passed, NULL);
	fds[0].fd = port.fd;
	fds[2].fd = signalfd(-1, &passed, SFD_CLOEXEC);
	if (!send_command(offset, argv + 1))
		return EXIT_SETUP;
	for (;;) {
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents && !channel_fill(&port)) {
			take_messages();
			machine_gone();
		}
		take_messages();
		if ((fds[1].revents && !pass_input(&fds[1])) || (fds[2].revents && !pass_signal(fds[2].fd)))
			machine_gone();
	}
}
