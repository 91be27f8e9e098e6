/* SPDX-License-Identifier: BSD-3-Clause */
/* An application, as a row of the table in app/apps.h: name, kind, own checks, and code. */
#ifndef ICBENCH_APPLICATION_H
#define ICBENCH_APPLICATION_H

#include <stdbool.h>
#include <stddef.h>

struct options;
struct run;

struct application {
	const char *name;
	/* The kind, by which the command line, a port and run() treat it; nothing depends on the name. */
	bool sends;      /* offers frames unasked */
	bool round_trip; /* each frame is answered, and the sender waits for the answer */
	bool duplex;     /* sends and receives at once, as its peer does; nobody answers */
	bool any_frame;  /* carries frames of any kind, from or into a FILE */
	bool sockets;    /* opens sockets for a protocol itself; has one address, the server's */
	bool forwards;   /* opens ports itself, in pairs; has no addresses */

	/* Checks options that only this application restricts. Returns false and a sentence in err if they do
	 * not fit. NULL: all do. */
	bool (*fits)(const struct options *o, char *err, size_t err_len);
	/* Opens files before the port is opened, so that a bad file has changed nothing. May fit o to them.
	 * Returns false and a sentence in err on failure. NULL: there is nothing to open. */
	bool (*prepare)(struct run *r, struct options *o, char *err, size_t err_len);
	/* Runs to the end and returns an exit code. The port is open and ready, unless the application opens
	 * its own. */
	int (*loop)(struct run *r);
};

#endif
