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
                "a rate for each second behind the warm-up, which has --rate: up to 3600 rates with commas "
                "(15k,30k,0,15k); 0 sends nothing, the last one stays"},
        {'p', "packet-size", "BYTES", KIND_U32, AT(io.packet_size), FRAME_PACKET_MIN, FRAME_PACKET_MAX,
                "Ethernet frame with its FCS; of a forwarder the largest one it carries, 1518 unless given"},
        {0, "sizes", "LIST", KIND_SIZES, AT(io.pattern), FRAME_PACKET_MIN, FRAME_PACKET_MAX,
                "a mix: up to 1024 packet sizes in turn, with commas (64,570,64,1518); instead of -p"},
        {0, "flows", "N[:FIELD][:zipf]", KIND_FLOWS, AT(io.pattern), 1, PATTERN_FLOWS_MAX,
                "1 to 1M flows in turn, or by Zipf's law; the sender's addresses (default), ports or macs "
                "differ; new: each frame is a flow of its own; not over UDP sockets"},
        {0, "header", "NAME[+vlanN]", KIND_HEADER, AT(io.ends.header), 1, FRAME_VLAN_LAST,
                "headers before the stamp: udp4 (default), tcp4, udp6 or tcp6, and a VLAN tag; not over UDP "
                "sockets"},
        {0, "denied", "PERCENT:PLACES:MARK", KIND_ACL, AT(io.acl), 1, 99,
                "a sender: a function in the path denies this share of flows, spread over so many places of "
                "its list; the mark is the port of the first place or a text for payloads; not over UDP "
                "sockets"},
        {0, "peer-denied", "PERCENT:PLACES:MARK", KIND_ACL, AT(io.peer_acl), 1, 99,
                "a receiver: the --denied of the frames that it counts; none of these has to come"},
        {'b', "burst", "FRAMES", KIND_U32, AT(io.burst), 1, IO_BURST_MAX, "frames handed over at once"},
        {'R', "raw", "IF", KIND_INTERFACE, AT(raw_interface), 0, 0,
                "AF_PACKET raw socket on interface IF instead of UDP (socket applications), the last of "
                "several; a forwarder's ports, in pairs"},
        {'X', "xdp", "IF", KIND_TEXT, AT(xdp_interface), 0, 0,
                "AF_XDP socket on interface IF instead of UDP (socket applications)"},
        {'m', "mmsg", NULL, KIND_FLAG, AT(io.mmsg), 0, 0,
                "sendmmsg/recvmmsg a burst instead of a call a frame (socket applications)"},
        {'G', "gso", NULL, KIND_FLAG, AT(gso), 0, 0,
                "UDP in trains of up to 64 datagrams that the kernel cuts up and puts together (UDP_SEGMENT, "
                "UDP_GRO)"},
        {'B', "blocking", NULL, KIND_FLAG, AT(io.blocking), 0, 0,
                "blocking sockets, no polling; a client then has a receiving thread"},
        {'c', "touch", NULL, KIND_FLAG, AT(io.touch), 0, 0,
                "generate and check every payload byte, and checksums"},
        {'s', "silent", NULL, KIND_FLAG, AT(silent), 0, 0, "hold window lines back until the end"},
        {0, "duration", "S", KIND_SECONDS, AT(duration_s), 0, 1e7,
                "measured seconds after the warm-up; 0 is until told to stop"},
        {0, "warmup", "S", KIND_SECONDS, AT(warmup_s), 0, 1e6,
                "seconds of window 0 before the first measured window"},
        {0, "count", "N", KIND_U64, AT(count), 0, 1e14, "stop after N scheduled frames; 0 is no limit"},
        {0, "window", "S", KIND_SECONDS, AT(window_s), 0.001, 3600, "length of a window"},
        {0, "drain", "S", KIND_SECONDS, AT(drain_s), 0, 600,
                "a receiver waits this long for frames under way after the sender's end mark or 'stop'"},
        {0, "yield", "N", KIND_U32, AT(yield_every), 0, 1e9,
                "0 never; 1 sched_yield() when a poll is empty, a ring full or a paced sender waits; N > 1 "
                "also after every N frames sent"},
        {0, "catch-up", "FRAMES", KIND_U32, AT(catch_up), 0, 1e9,
                "cap on the burst with which a late sender catches up; the rest is not_offered; 0 is no cap"},
        {0, "stream-id", "N", KIND_U16, AT(io.stream_id), 1, 65535,
                "the stream to send and to count; the low byte tells pairs apart, the high one launches"},
        {0, "peer-stream", "N", KIND_U16, AT(io.peer_stream), 0, 65535,
                "duplex: the stream to count, if another than --stream-id, so that own frames that come back "
                "are foreign; 0 is the same"},
        {0, "port", "N", KIND_U16, AT(io.ends.udp_port), 1, 65535,
                "port, both ends; of ask and echo the server's"},
        {0, "ring", "N", KIND_U32, AT(io.ring), 1, 1e6,
                "descriptors a ring (DPDK), or frames that a socket's buffers hold at least (never less than "
                "4 MiB)"},
        {0, "queues", "N", KIND_U32, AT(io.queues), 1, IO_QUEUES_MAX,
                "queue pairs of a DPDK port: a frame leaves by the one that its flow's Toeplitz hash picks, "
                "and all are polled"},
        {0, "await", "SOCKET", KIND_TEXT, AT(io.await_socket), 0, 0,
                "make the virtual device of a DPDK port once this socket is there, for up to 10 s: its "
                "server starts at the same time"},
        {0, "train", "FROM:TO:STEPS", KIND_TRAIN, AT(train_from), 1, 1e9,
                "a sender at the maximum rate sends one train a window: in turn one of STEPS lengths from "
                "FROM to TO frames, in equal ratios (in the warm-up FROM)"},
        {0, "histogram", "DIGITS", KIND_U32, AT(histogram_digits), 1, 5,
                "significant digits of the latency histogram"},
        {0, "supervised", NULL, KIND_FLAG, AT(supervised), 0, 0,
                "set up, say ready, wait for 'start' on stdin; end of file there ends the program as SIGTERM "
                "does"},
        {0, "io", "null", KIND_IO, AT(io_name), 0, 0,
                "no I/O: the tool's own ceiling (sends into nothing, receives frames it makes)"},
        {0, "fault", "KIND:N", KIND_FAULT, AT(fault), 1, 1e9,
                "for tests of the accounts: a sender drops, duplicates or reorders each N-th frame (drop:N, "
                "duplicate:N, reorder:N)"},
        {0, "loop", "N", KIND_U64, AT(loop), 0, 1e14, "replay: passes through FILE; 0 is without end"},
        {0, "timing", NULL, KIND_FLAG, AT(timing), 0, 0, "replay: the frames' own times instead of a rate"},
        {0, "capture", "FILE", KIND_TEXT, AT(capture_file), 0, 0,
                "replay: write what arrives into FILE, until --drain after the last frame"},
        {0, "step", NULL, KIND_FLAG, AT(step), 0, 0,
                "replay: read and send FILE anew for each line 'go' on stdin (with --supervised)"},
        {0, "swap", NULL, KIND_FLAG, AT(swap), 0, 0,
                "forward: swap source and destination MAC address of every frame"},
        {0, "accounts", NULL, KIND_FLAG, AT(accounts), 0, 0,
                "forward: look at every frame and count control frames apart, those that came in and those "
                "that went out"},
        {0, "delay", "US", KIND_MICROSECONDS, AT(delay_us), 0, 1e7,
                "forward: keep each frame that many microseconds, never less; decimals allowed"},
        {0, "delay-queue", "FRAMES", KIND_U32, AT(delay_queue), 0, 1 << 22,
                "forward: frames under delay, a direction; 0 is as many as 10 Mpps bring in, 1024 to 65536"},
        {0, "drop", "N", KIND_U32, AT(drop_every), 0, 1e9,
                "forward: drop each N-th frame of a direction; 0 is none"},
        {0, "reorder", "N", KIND_U32, AT(reorder_every), 0, 1e9,
                "forward: send each N-th frame of a direction behind its successor; 0 is none, 1 is "
                "impossible"},
        {0, "duplicate", "N", KIND_U32, AT(duplicate_every), 0, 1e9,
                "forward: send each N-th frame of a direction twice; 0 is none"},
        {0, "only", "N", KIND_U32, AT(only), 0, 2,
                "forward: drop, reorder and duplicate only what comes to the first (1) or the second (2) "
                "port "
                "of each pair; 0 is both"},
        {0, "cost", "CYCLES", KIND_U32, AT(cost_cycles), 0, 1e9,
                "forward: be busy that many TSC cycles for each frame"},
        {0, "protocol", "NAME", KIND_PROTOCOL, AT(protocol), 0, 0,
                "ask, echo: udp (unless given) or tcp, which are echoes; resp, memcached or http, a GET of "
                "--key"},
        {0, "connections", "N", KIND_U32, AT(connections), 1, 512, "ask: connections, which take turns"},
        {0, "message", "BYTES", KIND_U32, AT(message), 1, 1e6,
                "ask, echo: of an echo's request and answer, 16 or more; else of the value in each answer"},
        {0, "key", "NAME", KIND_TEXT, AT(key), 0, 0, "ask: what is asked for; icbench unless given"},
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
