/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/xdp_filter.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/frame.h"

#define QUEUES_MAX 64u

#define DO(operation, to, from, offset, value)                                                               \
	((struct bpf_insn){.code = (uint8_t)(operation),                                                     \
	        .dst_reg = (to),                                                                             \
	        .src_reg = (from),                                                                           \
	        .off = (int16_t)(offset),                                                                    \
	        .imm = (int32_t)(value)})
#define MOVE(to, from) DO(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define MOVE_VALUE(to, value) DO(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value)
#define LOAD(size, to, from, offset) DO(BPF_LDX | BPF_MEM | (size), to, from, offset, 0)
#define CONTEXT(to, member) LOAD(BPF_W, to, BPF_REG_1, offsetof(struct xdp_md, member))

/* Bounds, up to three instructions for each check, the redirection, and the path that passes. */
#define CODE_MAX (5 + 3 * FRAME_CHECKS_MAX + 8)

static int load_program(int map, const struct frame_ends *ends)
{
	const struct bpf_insn to_socket[] = {
	        CONTEXT(BPF_REG_2, rx_queue_index),
	        DO(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
	        DO(0, 0, 0, 0, 0),
	        MOVE_VALUE(BPF_REG_3, XDP_PASS), /* if no socket listens */
	        DO(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map),
	        DO(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	        MOVE_VALUE(BPF_REG_0, XDP_PASS),
	        DO(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	const unsigned pass = sizeof(to_socket) / sizeof(to_socket[0]) - 2;
	struct frame_check checks[FRAME_CHECKS_MAX];
	unsigned n = frame_checks(&ends->header, ends->udp_port, checks), length = 0;
	struct bpf_insn code[CODE_MAX];

	code[length++] = CONTEXT(BPF_REG_2, data);
	code[length++] = CONTEXT(BPF_REG_3, data_end);
	code[length++] = MOVE(BPF_REG_4, BPF_REG_2);
	code[length++] = DO(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, frame_header_bytes(&ends->header));
	code[length++] = DO(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, 0, 0);
	for (unsigned i = 0; i < n; i++) {
		const struct frame_check *c = &checks[i];
		bool half = c->bytes == 2;

		code[length++] = LOAD(half ? BPF_H : BPF_B, BPF_REG_4, BPF_REG_2, c->offset);
		code[length++] =
		        DO(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_4, 0, 0, half ? htons(c->mask) : c->mask);
		code[length++] =
		        DO(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_4, 0, 0, half ? htons(c->value) : c->value);
	}
	/* Resolves the jumps: a mismatch jumps to the last two instructions. */
	for (unsigned i = 0; i < length; i++)
		if (BPF_CLASS(code[i].code) == BPF_JMP)
			code[i].off = (int16_t)(length - i - 1 + pass);
	memcpy(code + length, to_socket, sizeof(to_socket));
	length += sizeof(to_socket) / sizeof(to_socket[0]);
	return bpf_prog_load(BPF_PROG_TYPE_XDP, "icbench", "BSD", code, length, NULL);
}

static int attach(const struct xdp_filter *f, unsigned ifindex, uint32_t mode)
{
	const struct bpf_link_create_opts options = {.sz = sizeof(options), .flags = mode};
	int link = bpf_link_create(f->program, (int)ifindex, BPF_XDP, &options);

	return link < 0 ? -errno : link;
}

static bool attach_any(
        struct xdp_filter *f, const char *interface, unsigned ifindex, char *err, size_t err_len)
{
	f->link = attach(f, ifindex, XDP_FLAGS_DRV_MODE);
	f->native = f->link >= 0;
	if (!f->native && f->link != -EBUSY && f->link != -EEXIST)
		f->link = attach(f, ifindex, XDP_FLAGS_SKB_MODE);
	if (f->link >= 0)
		return true;
	if (f->link == -EBUSY || f->link == -EEXIST)
		snprintf(err, err_len,
		        "interface %.60s is held by another XDP program: end what uses it (ip link show "
		        "%.60s)",
		        interface, interface);
	else
		snprintf(err, err_len, "the driver of %.60s takes no XDP program: %s; use -R instead",
		        interface, strerror(-f->link));
	return false;
}

bool xdp_filter_open(
        struct xdp_filter *f, const char *interface, const struct frame_ends *ends, char *err, size_t err_len)
{
	unsigned ifindex = if_nametoindex(interface);

	*f = (struct xdp_filter){-1, -1, -1, false};
	if (!ifindex) {
		snprintf(err, err_len, "there is no interface '%.60s' here", interface);
		return false;
	}
	f->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "icbench", sizeof(int), sizeof(int), QUEUES_MAX, NULL);
	if (f->map >= 0)
		f->program = load_program(f->map, ends);
	if (f->program < 0) {
		snprintf(err, err_len, "no XDP program for %.60s: %s%s", interface, strerror(errno),
		        errno == EPERM ? " (it needs CAP_NET_ADMIN and CAP_BPF)" : "");
		return false;
	}
	return attach_any(f, interface, ifindex, err, err_len);
}

bool xdp_filter_set(const struct xdp_filter *f, uint32_t queue, int socket)
{
	return bpf_map_update_elem(f->map, &queue, &socket, BPF_ANY) == 0;
}

void xdp_filter_close(struct xdp_filter *f)
{
	const int opened[] = {f->link, f->program, f->map};

	for (unsigned i = 0; i < sizeof(opened) / sizeof(opened[0]); i++)
		if (opened[i] >= 0)
			close(opened[i]);
}
