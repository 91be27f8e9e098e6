/* SPDX-License-Identifier: BSD-3-Clause */
/* For test_frames.py, one request a line: "make HEADER SIZE STREAM WINDOW SEQUENCE TIME PORT SEAL LOCAL_IP
 * LOCAL_MAC REMOTE_IP REMOTE_MAC" prints a frame as hex, made as the backends make it; SEAL is 2 for blank
 * padding. "parse HEADER PORT HEX" prints what the receive path sees in one. An empty line ends each answer;
 * "error" begins a refusal.
 */
#include "base/frame.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/apps.h"
#include "option/options.h"

static void print_hex(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

/* Parses the options of an application with raw frames, or prints why they are bad. */
static bool read_options(struct options *o, char **argv, int n)
{
	char err[200];

	if (options_parse(o, APPLICATIONS, n, argv, err, sizeof(err)) == OPTIONS_RUN)
		return true;
	printf("error %s\n", err);
	return false;
}

#define WORD(text) ((char *)(uintptr_t)(text))

static void make(char **a)
{
	char *argv[] = {WORD("frames"), WORD("send"), a[8], a[9], a[10], a[11], WORD("-p"), a[1],
	        WORD("--port"), a[6], WORD("-R"), WORD("eth0"), WORD("--header"), a[0]};
	uint8_t frame[FRAME_PACKET_MAX] = {0};
	struct options o;
	struct frame_label label = {(uint16_t)atoi(a[2]), (uint16_t)atoi(a[3]), strtoull(a[4], NULL, 0)};
	uint8_t *payload;
	int seal = atoi(a[7]);

	if (!read_options(&o, argv, sizeof(argv) / sizeof(argv[0])))
		return;
	payload = frame + frame_header_bytes(&o.io.ends.header);
	frame_write_headers(frame, &o.io.ends, o.io.packet_size);
	frame_stamp(payload, label, strtoull(a[5], NULL, 0));
	if (seal != 2)
		frame_fill_padding(
		        payload, frame_payload_bytes(&o.io.ends.header, o.io.packet_size), label.sequence);
	if (seal)
		frame_write_checksum(frame, &o.io.ends.header, seal == 2);
	print_hex(frame, o.io.packet_size - FRAME_FCS_BYTES);
}

/* "foreign", or: payload length, stream, window, sequence, time, checksums ok, padding ok; then the reflected
 * frame. */
static void parse(char **a)
{
	uint8_t frame[FRAME_PACKET_MAX + 64];
	char *argv[] = {WORD("frames"), WORD("recv"), WORD("0.0.0.0"), WORD("02:00:00:00:00:01"),
	        WORD("0.0.0.0"), WORD("02:00:00:00:00:01"), WORD("--port"), a[1], WORD("-R"), WORD("eth0"),
	        WORD("--header"), a[0], WORD("-p"), WORD("9216")};
	size_t n = strlen(a[2]) / 2;
	struct frame_header seen;
	struct frame_match match;
	struct options o;
	uint16_t length;
	const uint8_t *payload;

	if (n > sizeof(frame)) {
		puts("error the frame is too long");
		return;
	}
	if (!read_options(&o, argv, sizeof(argv) / sizeof(argv[0])))
		return;
	for (size_t i = 0; i < n; i++)
		sscanf(a[2] + 2 * i, "%2hhx", &frame[i]);
	match = frame_match(&o.io.ends.header, o.io.ends.udp_port);
	payload = frame_parse(frame, (uint32_t)n, &match, &length);
	if (!payload || length < FRAME_STAMP_BYTES) {
		puts("foreign");
		return;
	}
	seen = frame_detect(frame, (uint32_t)n);
	if (memcmp(&seen, &o.io.ends.header, sizeof(seen)) != 0) {
		puts("error another header was seen");
		return;
	}
	struct frame_label label = frame_label(payload);

	printf("%u %u %u %llu %llu %d %d\n", length, label.stream, label.window,
	        (unsigned long long)label.sequence, (unsigned long long)frame_time(payload),
	        frame_checksums_ok(frame, &o.io.ends.header),
	        frame_padding_ok(payload, length, label.sequence));
	frame_reflect(frame, &o.io.ends.header);
	print_hex(frame, n);
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		char *words[14] = {NULL}, *rest = NULL;
		int n = 0;

		for (char *word = strtok_r(line, " \n", &rest); word && n < 14;
		        word = strtok_r(NULL, " \n", &rest))
			words[n++] = word;
		if (n == 13 && strcmp(words[0], "make") == 0)
			make(words + 1);
		else if (n == 4 && strcmp(words[0], "parse") == 0)
			parse(words + 1);
		else
			puts("error see the head of frames.c");
		putchar('\n');
		fflush(stdout);
	}
	free(line);
	return 0;
}
