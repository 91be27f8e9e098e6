/* SPDX-License-Identifier: BSD-3-Clause */
/* For test_frames.py: "make SIZE STREAM WINDOW SEQUENCE TIME PORT SEAL LOCAL_IP LOCAL_MAC REMOTE_IP
 * REMOTE_MAC" prints a frame as hex, made as the backends make it; "parse PORT HEX" prints what the receive
 * path sees in one.
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

static int make(char **a)
{
	char *argv[] = {(char *)(uintptr_t) "frames", (char *)(uintptr_t) "send", a[7], a[8], a[9], a[10],
	        (char *)(uintptr_t) "-p", a[0], (char *)(uintptr_t) "--port", a[5]};
	uint8_t frame[FRAME_PACKET_MAX];
	struct options o;
	char err[200];
	struct frame_label label = {(uint16_t)atoi(a[1]), (uint16_t)atoi(a[2]), strtoull(a[3], NULL, 0)};

	if (options_parse(&o, APPLICATIONS, sizeof(argv) / sizeof(argv[0]), argv, err, sizeof(err)) !=
	        OPTIONS_RUN) {
		fprintf(stderr, "%s\n", err);
		return 2;
	}
	frame_write_headers(frame, &o.ends, o.packet_size);
	frame_stamp(frame + FRAME_HEADER_BYTES, label, strtoull(a[4], NULL, 0));
	frame_fill(frame + FRAME_HEADER_BYTES, frame_payload_bytes(o.packet_size), label.sequence);
	if (atoi(a[6]))
		frame_seal(frame);
	print_hex(frame, o.packet_size - FRAME_FCS_BYTES);
	return 0;
}

/* "foreign", or: payload length, stream, window, sequence, time, checksums ok, padding ok; then the reflected
 * frame. */
static int parse(char **a)
{
	uint8_t frame[FRAME_PACKET_MAX + 64];
	size_t n = strlen(a[1]) / 2;
	uint16_t length;
	const uint8_t *payload;

	if (n > sizeof(frame))
		return 2;
	for (size_t i = 0; i < n; i++)
		sscanf(a[1] + 2 * i, "%2hhx", &frame[i]);
	payload = frame_parse(frame, (uint32_t)n, (uint16_t)atoi(a[0]), &length);
	if (!payload || length < FRAME_STAMP_BYTES) {
		puts("foreign");
		return 0;
	}
	struct frame_label label = frame_label(payload);

	printf("%u %u %u %llu %llu %d %d\n", length, label.stream, label.window,
	        (unsigned long long)label.sequence, (unsigned long long)frame_time(payload),
	        frame_checksums_ok(frame), frame_filled(payload, length, label.sequence));
	frame_reflect(frame);
	print_hex(frame, n);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 13 && strcmp(argv[1], "make") == 0)
		return make(argv + 2);
	if (argc == 4 && strcmp(argv[1], "parse") == 0)
		return parse(argv + 2);
	fprintf(stderr, "usage: see the head of frames.c\n");
	return 2;
}
