/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/apps.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int app_pause(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* Blocked before the first child can end. As PID 1, unblocked signals without handlers would be
	 * ignored. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		got = sigwaitinfo(&set, NULL);
		if (got == SIGTERM || got == SIGINT)
			return 0;
		if (got < 0 && errno != EINTR)
			return 3;
	}
}
