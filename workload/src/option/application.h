/* SPDX-License-Identifier: BSD-3-Clause */
/* An application, as a row of the table in app/apps.h: its name, what kind it is, and its code. */
#ifndef ICBENCH_APPLICATION_H
#define ICBENCH_APPLICATION_H

#include <stdbool.h>
#include <stddef.h>

struct options;
struct run;

struct application {
	const char *name;
	/* What the command line, a port and run() ask; nobody asks for the name. */
	bool sends;      /* offers frames unasked */
	bool round_trip; /* each frame is answered, and the sender waits for the answer */
	bool duplex;     /* sends and receives at once, as its peer does: nobody answers */
	bool any_frame;  /* carries frames of any kind, from or into a FILE */
	bool sockets;    /* opens sockets of its own for a protocol; has one address, the server's */
	bool forwards;   /* opens ports of its own, in pairs; has no addresses */

	/* Opens files, before the port is: a bad one has changed nothing. It may fit o to them. False, and a
	 * sentence in err, on failure. NULL: nothing to open. */
	bool (*prepare)(struct run *r, struct options *o, char *err, size_t err_len);
	/* Runs to the end; returns an exit code. The port is open and ready, unless it opens its own. */
	int (*loop)(struct run *r);
};

#endif
