/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of ask and echo, which open their own sockets. */
#include "check.h"
#include "command_line.h"

#define ASK "icbench-workload", "ask"

int main(void)
{
	const char *plain[] = {ASK, "10.0.0.1", "--duration", "1"};
	const char *all[] = {ASK, "10.0.0.1", "--duration", "1", "--protocol", "http", "--connections", "8",
	        "--message", "3", "--key", "body", "--port", "8080", "-r", "5k"};
	const char *server[] = {"icbench-workload", "echo", "127.0.0.1", "--protocol=tcp"};
	const char *nowhere[] = {ASK, "--duration", "1"};
	const char *name[] = {ASK, "server", "--duration", "1"};
	const char *two[] = {ASK, "10.0.0.1", "10.0.0.2", "--duration", "1"};
	const char *endless[] = {ASK, "10.0.0.1"};
	const char *dpdk[] = {"icbench-workload", "dpdk-ask", "10.0.0.1", "--duration", "1"};
	const char *raw[] = {ASK, "10.0.0.1", "--duration", "1", "-R", "eth0"};
	const char *unknown[] = {ASK, "10.0.0.1", "--duration", "1", "--protocol", "gopher"};
	const char *small[] = {ASK, "10.0.0.1", "--duration", "1", "--protocol", "tcp", "--message", "15"};
	const char *large[] = {ASK, "10.0.0.1", "--duration", "1", "--message", "65508"};
	const char *foreign[] = {"icbench-workload", "echo", "10.0.0.1", "--protocol", "resp"};
	struct options o;

#define PARSE(words) parse_line(&o, (int)(sizeof(words) / sizeof(words[0])), words)
	CHECK(PARSE(plain) == OPTIONS_RUN);
	CHECK(o.app == &app_ask && o.protocol == PROTOCOL_UDP && o.connections == 1 && o.message == 64);
	CHECK_EQUAL(o.io.ends.remote_ip.s_addr, htonl(0x0a000001));
	CHECK(PARSE(all) == OPTIONS_RUN);
	CHECK(o.protocol == PROTOCOL_HTTP && o.connections == 8 && o.message == 3 && o.rate_pps == 5000);
	CHECK(strcmp(o.key, "body") == 0 && o.io.ends.udp_port == 8080);
	CHECK(PARSE(server) == OPTIONS_RUN);
	CHECK(o.app == &app_echo && o.protocol == PROTOCOL_TCP && !o.duration_s);
	CHECK(PARSE(nowhere) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "ask needs the server's IPv4 address");
	CHECK(PARSE(name) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "SERVER_IP must be an IPv4 address such as 10.0.0.1, not 'server'");
	CHECK(PARSE(two) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "unexpected argument '10.0.0.2'");
	CHECK(PARSE(endless) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "ask needs a --duration");
	CHECK(PARSE(dpdk) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "dpdk-ask opens its own sockets");
	CHECK(PARSE(raw) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "leave out dpdk-, -R");
	CHECK(PARSE(unknown) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--protocol takes udp, tcp, resp, memcached or http, not 'gopher'");
	CHECK(PARSE(foreign) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "start a server of resp");
	CHECK(PARSE(small) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "--message 15 is no length of an echo");
	CHECK(PARSE(large) == OPTIONS_BAD);
	CHECK_CONTAINS(err, "of udp at most 65507");
#undef PARSE
	return 0;
}
