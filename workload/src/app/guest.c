/* SPDX-License-Identifier: BSD-3-Clause */
/* The init process of a virtual machine: runs the commands that come over its virtio-serial ports. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/apps.h"
#include "base/clock.h"
#include "machine/channel.h"
#include "machine/setup.h"
#include "run/run.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#define MODULES "/modules"
#define PORTS "/sys/class/virtio-ports"
#define WORDS_MAX 256
/* Exit code of a command that cannot be executed, as in shells. */
#define NOT_EXECUTED 127

/* A port and the process that it carries. */
struct carrier {
	struct channel port; /* its fd is -1 if the machine has no such port */
	bool connected;
	pid_t pid;            /* 0: none */
	int input, output[2]; /* pipes; output: standard output and error, -1 at their ends */
};

static struct carrier carriers[CHANNEL_COUNT];

static void mount_all(void)
{
	static const struct {
		const char *type, *at;
	} MOUNTS[] = {
	        {"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"hugetlbfs", "/dev/hugepages"}};

	for (size_t i = 0; i < sizeof(MOUNTS) / sizeof(MOUNTS[0]); i++) {
		mkdir(MOUNTS[i].at, 0755);
		if (mount(MOUNTS[i].type, MOUNTS[i].at, MOUNTS[i].type, 0, NULL) && errno != EBUSY)
			fprintf(stderr, "icbench-guest: %s: %s\n", MOUNTS[i].at, strerror(errno));
	}
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Loads the kernel's modules, whose names begin with the numbers of their order. */
static void load_modules(void)
{
	struct dirent **names;
	int count = scandir(MODULES, &names, not_hidden, alphasort);

	for (int i = 0; i < count; i++) {
		char path[512];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", MODULES, names[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if ((fd < 0 || syscall(SYS_finit_module, fd, "", 0)) && errno != EEXIST)
			fprintf(stderr, "icbench-guest: module %s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		free(names[i]);
	}
}

/* Opens the ports that are named for commands. Returns how many there are. */
static int open_ports(void)
{
	struct dirent **names;
	int count = scandir(PORTS, &names, not_hidden, alphasort), opened = 0;

	for (int i = 0; i < count; i++) {
		char path[512], name[64] = "";
		unsigned number;
		FILE *file;

		snprintf(path, sizeof(path), PORTS "/%s/name", names[i]->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) &&
		        sscanf(name, CHANNEL_NAME "%u", &number) == 1 && number < CHANNEL_COUNT &&
		        carriers[number].port.fd < 0) {
			struct channel *port = &carriers[number].port;

			snprintf(path, sizeof(path), "/dev/%s", names[i]->d_name);
			port->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
			/* A port without its other end always polls as hung up, so a signal says that it has
			 * one. */
			if (port->fd >= 0 && fcntl(port->fd, F_SETOWN, getpid()) == 0 &&
			        fcntl(port->fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC) == 0)
				opened++;
		}
		if (file)
			fclose(file);
		free(names[i]);
	}
	return opened;
}

/* Makes CLOCK_MONOTONIC of this process what it is on the host. */
static bool set_clock(int64_t offset)
{
	char text[64];
	int64_t seconds = offset / 1000000000, rest = offset % 1000000000;
	int fd, own;
	bool good;

	if (rest < 0) {
		seconds--;
		rest += 1000000000;
	}
	if (unshare(CLONE_NEWTIME))
		return false;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	own = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "monotonic %lld %lld\n", (long long)seconds, (long long)rest);
	good = fd >= 0 && own >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
	       setns(own, CLONE_NEWTIME) == 0;
	close(fd);
	close(own);
	return good;
}

/* words: the CPU to run on, then the command's. */
_Noreturn static void execute(int64_t offset, char **words, const int pipes[3])
{
	sigset_t none;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((unsigned)atoi(*words++), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	for (int i = 0; i < 3; i++)
		dup2(pipes[i], i);
	if (!set_clock(offset))
		fprintf(stderr,
		        "icbench-workload guest: the clock cannot be set (%s): the kernel needs "
		        "CONFIG_TIME_NS\n",
		        strerror(errno));
	else if (execv(words[0], words))
		fprintf(stderr, "icbench-workload guest: %s: %s\n", words[0], strerror(errno));
	_exit(NOT_EXECUTED);
}

static void close_pipe(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void report_end(struct carrier *c, int32_t status)
{
	channel_send(&c->port, CHANNEL_EXIT, &status, sizeof(status));
}

/* Starts a command. Its words are in the message, which outlives them. */
static void start(struct carrier *c, const struct message *m)
{
	char *words[WORDS_MAX + 1] = {NULL};
	int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
	int64_t offset;
	int count = 0;

	if (m->length <= sizeof(offset) || m->bytes[m->length - 1])
		return;
	memcpy(&offset, m->bytes, sizeof(offset));
	for (const uint8_t *at = m->bytes + sizeof(offset); at < m->bytes + m->length && count < WORDS_MAX;
	        at += strlen((const char *)at) + 1)
		words[count++] = (char *)(uintptr_t)at;
	for (int i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC)) {
			report_end(c, NOT_EXECUTED << 8);
			return;
		}
	c->pid = fork();
	if (c->pid == 0)
		execute(offset, words, (const int[]){pipes[0][0], pipes[1][1], pipes[2][1]});
	close(pipes[0][0]);
	close(pipes[1][1]);
	close(pipes[2][1]);
	c->input = pipes[0][1];
	c->output[0] = pipes[1][0];
	c->output[1] = pipes[2][0];
	for (int i = 0; i < 2; i++)
		fcntl(c->output[i], F_SETFL, O_NONBLOCK);
	fcntl(c->input, F_SETFL, O_NONBLOCK);
}

/* Ends a process and forgets it: its relay is gone. */
static void end_process(struct carrier *c)
{
	if (c->pid > 0) {
		kill(-c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
	close_pipe(&c->input);
	close_pipe(&c->output[0]);
	close_pipe(&c->output[1]);
}

/* Passes on what a process has written so far. */
static void pass_output(struct carrier *c, int stream)
{
	uint8_t bytes[CHANNEL_MAX];
	ssize_t n;

	while (c->output[stream] >= 0 && (n = read(c->output[stream], bytes, sizeof(bytes))) != -1) {
		if (!n)
			close_pipe(&c->output[stream]);
		else
			channel_send(&c->port, stream ? CHANNEL_ERROR : CHANNEL_OUTPUT, bytes, (size_t)n);
	}
}

static void take_message(struct carrier *c, const struct message *m)
{
	uint64_t now = clock_monotonic_ns();
	int32_t number;

	if (m->kind == CHANNEL_TIME || m->kind == CHANNEL_RUN) {
		if (m->id != c->port.id)
			end_process(c);
		c->port.id = m->id;
	}
	if (m->id != c->port.id)
		return;
	if (m->kind == CHANNEL_TIME)
		channel_send(&c->port, CHANNEL_TIME, &now, sizeof(now));
	else if (m->kind == CHANNEL_RUN && !c->pid)
		start(c, m);
	else if (m->kind == CHANNEL_INPUT && !m->length)
		close_pipe(&c->input);
	else if (m->kind == CHANNEL_INPUT && c->input >= 0 && write(c->input, m->bytes, m->length) < 0)
		close_pipe(&c->input); /* it reads no more */
	if (m->kind == CHANNEL_SIGNAL && m->length == sizeof(number) && c->pid > 0) {
		memcpy(&number, m->bytes, sizeof(number));
		kill(-c->pid, number);
	}
}

/* The kernel delivers bytes at once, and the news of a connection later: until then an answer has no way out,
 * so the bytes wait in the port. */
static void hear(struct carrier *c, short events)
{
	struct message m;

	c->connected = !(events & POLLHUP) && channel_fill(&c->port);
	if (!c->connected) {
		end_process(c);
		c->port.used = 0;
	}
	while (channel_next(&c->port, &m)) {
		take_message(c, &m);
		channel_drop(&c->port, &m);
	}
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
			struct carrier *c = &carriers[i];

			if (c->pid != pid)
				continue;
			pass_output(c, 0);
			pass_output(c, 1);
			c->pid = 0;
			end_process(c);
			report_end(c, status);
		}
}

static void take_signals(int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGIO)
			for (unsigned i = 0; i < CHANNEL_COUNT; i++)
				carriers[i].connected = carriers[i].port.fd >= 0;
	reap();
}

static void serve(int signals)
{
	struct pollfd fds[1 + 3 * CHANNEL_COUNT] = {{.fd = signals, .events = POLLIN}};

	for (;;) {
		for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
			struct carrier *c = &carriers[i];

			fds[1 + 3 * i] = (struct pollfd){c->connected ? c->port.fd : -1, POLLIN, 0};
			fds[2 + 3 * i] = (struct pollfd){c->output[0], POLLIN, 0};
			fds[3 + 3 * i] = (struct pollfd){c->output[1], POLLIN, 0};
		}
		if (poll(fds, 1 + 3 * CHANNEL_COUNT, -1) < 0)
			continue;
		for (unsigned i = 0; i < CHANNEL_COUNT; i++) {
			for (int stream = 0; stream < 2; stream++)
				if (fds[2 + 3 * i + stream].revents)
					pass_output(&carriers[i], stream);
			if (fds[1 + 3 * i].revents)
				hear(&carriers[i], fds[1 + 3 * i].revents);
		}
		if (fds[0].revents)
			take_signals(signals);
	}
}

int app_guest(int argc, char **argv)
{
	sigset_t awaited;

	if (getpid() != 1)
		return setup(argc, argv);
	mount_all();
	load_modules();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGCHLD);
	sigaddset(&awaited, SIGIO);
	sigprocmask(SIG_BLOCK, &awaited, NULL);
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		carriers[i] = (struct carrier){
		        .port = {.fd = -1}, .connected = true, .input = -1, .output = {-1, -1}};
	if (!open_ports()) {
		fputs("icbench-guest: there is no virtio-serial port: the kernel needs virtio_console\n",
		        stderr);
		reboot(RB_POWER_OFF);
		return EXIT_SETUP;
	}
	serve(signalfd(-1, &awaited, SFD_NONBLOCK | SFD_CLOEXEC));
	return EXIT_OK;
}
