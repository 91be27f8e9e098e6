/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/control.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_int control_stop_reason;
volatile bool control_abandon;

static _Atomic uint64_t start_ns;
static atomic_bool started, counters_asked, measure_asked;
static atomic_uint steps;
/* Posted when a run may begin or has to end. */
static sem_t event;

static void request_stop(enum stop_reason reason)
{
	int none = STOP_NONE;

	atomic_compare_exchange_strong(&control_stop_reason, &none, reason);
	sem_post(&event);
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	if (control_stopped())
		control_abandon = true;
	request_stop(STOP_SIGNAL);
}

void control_line(const char *line)
{
	char *end;

	if (strcmp(line, "stop") == 0) {
		request_stop(STOP_LINE);
	} else if (strcmp(line, "go") == 0) {
		atomic_fetch_add(&steps, 1);
	} else if (strcmp(line, "counters") == 0) {
		atomic_store(&counters_asked, true);
	} else if (strcmp(line, "measure") == 0) {
		atomic_store(&measure_asked, true);
	} else if (strcmp(line, "start") == 0) {
		atomic_store(&started, true);
		sem_post(&event);
	} else if (strncmp(line, "start ", 6) == 0) {
		errno = 0;
		uint64_t ns = strtoull(line + 6, &end, 10);

		if (errno || end == line + 6 || *end) {
			fprintf(stderr,
			        "icbench-workload: 'start' takes nanoseconds, not '%.40s'; starting now\n",
			        line + 6);
			ns = 0;
		}
		atomic_store(&start_ns, ns);
		atomic_store(&started, true);
		sem_post(&event);
	} else if (*line) {
		fprintf(stderr,
		        "icbench-workload: unknown line '%.40s' on stdin; 'start', 'stop', 'measure', "
		        "'go' and 'counters' are known\n",
		        line);
	}
}

static void *read_stdin(void *unused)
{
	char line[256];
	size_t used = 0;
	ssize_t n;

	while ((n = read(STDIN_FILENO, line + used, sizeof(line) - 1 - used)) != 0) {
		char *newline;

		if (n < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		used += (size_t)n;
		while ((newline = memchr(line, '\n', used))) {
			size_t length = (size_t)(newline - line) + 1;

			*newline = 0;
			control_line(line);
			used -= length;
			memmove(line, line + length, used);
		}
		if (used == sizeof(line) - 1) /* no command is that long */
			used = 0;
	}
	request_stop(STOP_EOF);
	return unused;
}

int control_init(bool supervised)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;
	sigset_t all, old;
	int error = 0;

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (supervised) {
		sigfillset(&all); /* signals must interrupt the working thread, not this one */
		pthread_sigmask(SIG_SETMASK, &all, &old);
		error = pthread_create(&thread, NULL, read_stdin, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (!error)
			pthread_detach(thread);
	}
	return error;
}

bool control_started(uint64_t *at_ns)
{
	*at_ns = atomic_load(&start_ns);
	return atomic_load(&started);
}

unsigned control_steps(void)
{
	return atomic_load_explicit(&steps, memory_order_relaxed);
}

bool control_counters_asked(void)
{
	/* Loading is cheap; exchanging on every call would not be. */
	return atomic_load_explicit(&counters_asked, memory_order_relaxed) &&
	       atomic_exchange(&counters_asked, false);
}

bool control_measure_asked(void)
{
	return atomic_load_explicit(&measure_asked, memory_order_relaxed) &&
	       atomic_exchange(&measure_asked, false);
}

/* Sleeps until the start. A process that wakes up periodically next to a polling peer keeps all other
 * processes off the CPU: if processes of a control group poll and wake up every millisecond on one CPU, Linux
 * 6.18 gives that group the whole CPU. */
void control_wait_start(void)
{
	uint64_t ns;

	while (!control_started(&ns) && !control_stopped())
		sem_wait(&event); /* a signal ends it early */
}
