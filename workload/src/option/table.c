/* SPDX-License-Identifier: BSD-3-Clause */
#include "option/table.h"

#include <string.h>

#include "base/frame.h"

#define AT(field) offsetof(struct options, field)

const struct option_row OPTION_TABLE[] = {
        {'r', "rate", "PPS", KIND_RATE, AT(rate_pps), 0, 1e9,
                "frames per second and process; 0 is the maximum the port takes; k, M and decimals allowed "
                "(1.5M)"},
        {0, "trace", "LIST", KIND_TRACE, AT(trace), 0, 1e9,
                "a rate for each second after the warm-up, which has --rate: up to 3600 rates separated "
                "by commas (15k,30k,0,15k); 0 sends nothing, the last rate stays"},
        {'p', "packet-size", "BYTES", KIND_U32, AT(io.packet_size), FRAME_PACKET_MIN, FRAME_PACKET_MAX,
                "Ethernet frame with its FCS; for a forwarder the largest frame, 1518 unless given"},
        {0, "sizes", "LIST", KIND_SIZES, AT(io.pattern), FRAME_PACKET_MIN, FRAME_PACKET_MAX,
                "a mix: up to 1024 packet sizes in turn, separated by commas (64,570,64,1518); instead "
                "of -p"},
        {0, "flows", "N[:FIELD][:zipf]", KIND_FLOWS, AT(io.pattern), 1, PATTERN_FLOWS_MAX,
                "1 to 1M flows in turn, or by Zipf's law, which differ in the sender's addresses "
                "(default), ports or macs; new: each frame is a new flow; not over UDP sockets"},
        {0, "routes", "FIRST:COUNT", KIND_ROUTES, AT(io.routes), 0, PATTERN_ROUTES_MAX,
                "send to addresses below COUNT prefixes of a routing table, from number FIRST on: flow k to "
                "the one of route FIRST + k % COUNT; not over UDP sockets"},
        {0, "header", "NAME[+vlanN]", KIND_HEADER, AT(io.ends.header), 1, FRAME_VLAN_LAST,
                "headers before the stamp: udp4 (default), tcp4, udp6 or tcp6, and a VLAN tag; not over UDP "
                "sockets"},
        {0, "acl-drops", "PERCENT:PLACES:MARK", KIND_ACL, AT(io.acl), 1, 99,
                "sender: a function in the path drops this percentage of flows, spread evenly over the "
                "PLACES of its list; MARK is the port of the first place, or a text in payloads; "
                "not over UDP sockets"},
        {0, "peer-acl-drops", "PERCENT:PLACES:MARK", KIND_ACL, AT(io.peer_acl), 1, 99,
                "receiver: the --acl-drops of the frames that it counts; those to be dropped are not "
                "missing"},
        {'b', "burst", "FRAMES", KIND_U32, AT(io.burst), 1, IO_BURST_MAX, "frames sent or received at once"},
        {'R', "raw", "IF", KIND_INTERFACE, AT(raw_interface), 0, 0,
                "AF_PACKET raw socket on interface IF instead of UDP (socket applications), the last of "
                "several; the ports of a forwarder, in pairs"},
        {'X', "xdp", "IF", KIND_TEXT, AT(xdp_interface), 0, 0,
                "AF_XDP socket on interface IF instead of UDP (socket applications)"},
        {'m', "mmsg", NULL, KIND_FLAG, AT(io.mmsg), 0, 0,
                "sendmmsg/recvmmsg for each burst instead of a call for each frame (socket applications)"},
        {'G', "gso", NULL, KIND_FLAG, AT(gso), 0, 0,
                "UDP in trains of up to 64 datagrams, which the kernel splits and merges (UDP_SEGMENT, "
                "UDP_GRO)"},
        {'B', "blocking", NULL, KIND_FLAG, AT(io.blocking), 0, 0,
                "blocking sockets, no polling; a client then receives in a second thread"},
        {0, "wait", "NAME", KIND_WAIT, AT(io.wait), 0, 0,
                "poll (default); interrupt: sleep until a frame arrives or a burst is due; adaptive: poll "
                "for "
                "50 us after the latest frame, and before a burst is due"},
        {'c', "check-payload", NULL, KIND_FLAG, AT(io.check_payload), 0, 0,
                "write and check every payload byte, and checksums"},
        {'s', "silent", NULL, KIND_FLAG, AT(silent), 0, 0, "write window lines only at the end"},
        {0, "duration", "S", KIND_SECONDS, AT(duration_s), 0, 1e7,
                "measured seconds after the warm-up; 0: until stopped"},
        {0, "warmup", "S", KIND_SECONDS, AT(warmup_s), 0, 1e6,
                "seconds of window 0 before the first measured window"},
        {0, "count", "N", KIND_U64, AT(count), 0, 1e14, "stop after N scheduled frames; 0: no limit"},
        {0, "window", "S", KIND_SECONDS, AT(window_s), 0.001, 3600, "length of a window"},
        {0, "drain", "S", KIND_SECONDS, AT(drain_s), 0, 600,
                "how long a receiver waits for outstanding frames after the sender's end mark or 'stop'"},
        {0, "yield", "N", KIND_U32, AT(yield_every), 0, 1e9,
                "0 never; 1 sched_yield() when a poll is empty, a ring full or a paced sender waits; N > 1 "
                "also after every N frames sent"},
        {0, "catch-up", "FRAMES", KIND_U32, AT(catch_up), 0, 1e9,
                "limit of the burst with which a late sender catches up; the rest is not_offered; 0: no "
                "limit"},
        {0, "stream-id", "N", KIND_U16, AT(io.stream_id), 1, 65535,
                "the stream to send and to count; the low byte identifies a pair, the high byte a launch"},
        {0, "peer-stream", "N", KIND_U16, AT(io.peer_stream), 0, 65535,
                "duplex: the stream to count if it is not --stream-id, so that own frames that return "
                "are foreign; 0: the same"},
        {0, "port", "N", KIND_U16, AT(io.ends.udp_port), 1, 65535,
                "port, both ends; of ask and echo the server's"},
        {0, "ring", "N", KIND_U32, AT(io.ring), 1, 1e6,
                "descriptors of a ring (DPDK), or frames for which a socket's buffers have room (never "
                "less than 4 MiB)"},
        {0, "queues", "N", KIND_U32, AT(io.queues), 1, IO_QUEUES_MAX,
                "queue pairs of a DPDK port; the Toeplitz hash of its flow selects the one through which "
                "a frame leaves, and all are polled"},
        {0, "await", "SOCKET", KIND_TEXT, AT(io.await_socket), 0, 0,
                "create the virtual device of a DPDK port as soon as this socket exists, within 10 s; "
                "for a server that starts at the same time"},
        {0, "train", "FROM:TO:STEPS", KIND_TRAIN, AT(train_from), 1, 1e9,
                "a sender at the maximum rate sends one train in each window: in turn one of STEPS "
                "lengths from FROM to TO frames, in equal ratios (FROM in the warm-up)"},
        {0, "histogram", "DIGITS", KIND_U32, AT(histogram_digits), 1, 5,
                "significant digits of the latency histogram"},
        {0, "supervised", NULL, KIND_FLAG, AT(supervised), 0, 0,
                "set up, write ready, wait for 'start' on stdin; end of file there ends the program like "
                "SIGTERM"},
        {0, "io", "NAME", KIND_IO, AT(io_name), 0, 0,
                "null: no I/O, the tool's own ceiling (sends into nothing, receives frames it makes); tap: "
                "the "
                "character device of a macvtap link, which -R names (/dev/tapN)"},
        {0, "fault", "KIND:N", KIND_FAULT, AT(fault), 1, 1e9,
                "for tests of the accounts: a sender drops, duplicates or reorders every N-th frame "
                "(drop:N, duplicate:N, reorder:N)"},
        {0, "loop", "N", KIND_U64, AT(loop), 0, 1e14, "replay: passes through FILE; 0: without end"},
        {0, "timing", NULL, KIND_FLAG, AT(timing), 0, 0, "replay: the frames' own times instead of a rate"},
        {0, "capture", "FILE", KIND_TEXT, AT(capture_file), 0, 0,
                "replay: write what arrives to FILE, until --drain after the last frame"},
        {0, "step", NULL, KIND_FLAG, AT(step), 0, 0,
                "replay: read and send FILE again for each line 'go' on stdin (with --supervised)"},
        {0, "swap", NULL, KIND_FLAG, AT(swap), 0, 0,
                "forward: swap source and destination MAC address of every frame"},
        {0, "accounts", NULL, KIND_FLAG, AT(accounts), 0, 0,
                "forward: inspect every frame and count control frames separately, received and sent ones"},
        {0, "delay", "US", KIND_MICROSECONDS, AT(delay_us), 0, 1e7,
                "forward: delay each frame by that many microseconds, never less; decimals allowed"},
        {0, "delay-queue", "FRAMES", KIND_U32, AT(delay_queue), 0, 1 << 22,
                "forward: room for delayed frames of each direction; 0: enough for 10 Mpps, 1024 to 65536"},
        {0, "drop", "N", KIND_U32, AT(drop_every), 0, 1e9,
                "forward: drop every N-th frame of a direction; 0: none"},
        {0, "reorder", "N", KIND_U32, AT(reorder_every), 0, 1e9,
                "forward: send every N-th frame of a direction after its successor; 0: none, 1 is "
                "impossible"},
        {0, "duplicate", "N", KIND_U32, AT(duplicate_every), 0, 1e9,
                "forward: send every N-th frame of a direction twice; 0: none"},
        {0, "only", "N", KIND_U32, AT(only), 0, 2,
                "forward: drop, reorder and duplicate only what arrives at the first (1) or the second "
                "(2) port of each pair; 0: both"},
        {0, "cost", "CYCLES", KIND_U32, AT(cost_cycles), 0, 1e9,
                "forward: spend that many TSC cycles on each frame"},
        {0, "protocol", "NAME", KIND_PROTOCOL, AT(protocol), 0, 0,
                "ask, echo: udp (default) or tcp, which are echoes; resp, memcached or http, a GET of "
                "--key"},
        {0, "connections", "N", KIND_U32, AT(connections), 1, 512, "ask: connections, used in turn"},
        {0, "message", "BYTES", KIND_U32, AT(message), 1, 1e6,
                "ask, echo: length of an echo's request and answer, 16 or more; otherwise of the value "
                "in each answer"},
        {0, "key", "NAME", KIND_TEXT, AT(key), 0, 0, "ask: the requested key; icbench unless given"},
};

const size_t OPTION_ROWS = sizeof(OPTION_TABLE) / sizeof(OPTION_TABLE[0]);

const struct options OPTION_DEFAULTS = {
        .io.packet_size = 64,
        .io.burst = 32,
        .window_s = 0.1,
        .drain_s = 2,
        .io.ring = 256,
        .io.queues = 1,
        .histogram_digits = 3,
        .io.stream_id = 1,
        .io.ends.udp_port = 9,
        .loop = 1,
        .connections = 1,
        .message = 64,
        .key = "icbench",
};

const struct option_row *option_by_name(const char *name, size_t length)
{
	for (size_t i = 0; i < OPTION_ROWS; i++)
		if (strlen(OPTION_TABLE[i].name) == length &&
		        strncmp(OPTION_TABLE[i].name, name, length) == 0)
			return &OPTION_TABLE[i];
	return NULL;
}

const struct option_row *option_by_letter(char letter)
{
	for (size_t i = 0; i < OPTION_ROWS; i++)
		if (letter && OPTION_TABLE[i].letter == letter)
			return &OPTION_TABLE[i];
	return NULL;
}
