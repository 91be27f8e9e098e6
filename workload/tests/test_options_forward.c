/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the forwarders: their ports, and what they do to frames. */
#include "check.h"
#include "command_line.h"

/* Parses "forward" with up to eight words. */
static enum options_outcome parse_forward(struct options *o, const char *app, const char *const words[])
{
	const char *argv[MAX_ARGS] = {"x", app};
	int argc = 2;

	while (*words)
		argv[argc++] = *words++;
	return parse_line(o, argc, argv);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

int main(void)
{
	char names[IO_PORTS_MAX + 2][8];
	const char *many[2 * (IO_PORTS_MAX + 2) + 2] = {"x", "forward"};
	struct options o;

	CHECK(parse_forward(&o, "forward",
	              WORDS("-R", "a0", "-Ra1", "--swap", "--delay=0.5", "--drop", "9", "--only", "2")) ==
	        OPTIONS_RUN);
	CHECK(o.app == &app_forward && strcmp(o.backend->name, "raw") == 0 && o.io.interface_count == 2 &&
	        o.swap);
	CHECK(strcmp(o.io.interfaces[0], "a0") == 0 && strcmp(o.io.interfaces[1], "a1") == 0);
	CHECK(o.delay_us == 0.5 && o.drop_every == 9 && o.only == 2 && o.io.packet_size == 1518);
	CHECK(parse_forward(&o, "dpdk-forward", WORDS("-p", "9000", "--", "--no-pci")) == OPTIONS_RUN);
	CHECK(strcmp(o.backend->name, "dpdk") == 0 && o.io.packet_size == 9000 && o.io.eal_argc == 1 &&
	        !o.swap);
	CHECK(parse_forward(&o, "forward", WORDS("-R", "a0")) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "1 were given");
	CHECK(parse_forward(&o, "forward", WORDS("-R", "a", "-R", "b", "-R", "c")) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "3 were given");
	CHECK(parse_forward(&o, "forward", WORDS("-R", "a", "-R", "a")) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "'a' was given twice");
	CHECK(parse_forward(&o, "forward", WORDS("-R", "a", "-R", "b", "--io", "null")) == OPTIONS_BAD);
	CHECK(parse_forward(&o, "forward", WORDS("-R", "a", "-R", "b", "10.0.0.1")) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "'10.0.0.1'");
	CHECK_CONTAINS(err, "no addresses");
	CHECK(parse_forward(&o, "dpdk-forward", WORDS("--reorder", "1")) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "take 2 or more");
	for (unsigned i = 0; i < IO_PORTS_MAX + 2; i++) {
		snprintf(names[i], sizeof(names[i]), "p%u", i);
		many[2 + 2 * i] = "-R";
		many[3 + 2 * i] = names[i];
	}
	CHECK(parse_line(&o, 2 + 2 * (int)IO_PORTS_MAX, many) == OPTIONS_RUN);
	CHECK(parse_line(&o, 2 + 2 * (int)(IO_PORTS_MAX + 2), many) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "34 were given");
	/* Other applications use the last of several. */
	CHECK(parse3(&o, "-Rone", "-Rtwo", NULL) == OPTIONS_RUN);
	CHECK(strcmp(o.raw_interface, "two") == 0);
	return 0;
}
