/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash that selects queues, against the vectors that Microsoft publishes ("Verifying the RSS hash
 * calculation"), and the queues of whole frames.
 */
#include <arpa/inet.h>

#include "base/frame.h"
#include "base/rss.h"
#include "check.h"

struct vector {
	const char *destination, *source;
	uint16_t destination_port, source_port;
	uint32_t addresses, with_ports;
};

static const struct vector IPV4[] = {
        {"161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
        {"65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
        {"12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
        {"209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
        {"202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
};

static const struct vector IPV6[] = {
        {"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
        {"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
        {"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251, 0x4b61e985,
                0x02d1feef},
};

static void check_vector(const struct vector *v, int family, uint32_t address)
{
	uint16_t ports[2] = {htons(v->source_port), htons(v->destination_port)};
	uint8_t input[RSS_INPUT_MAX];

	CHECK(inet_pton(family, v->source, input) == 1);
	CHECK(inet_pton(family, v->destination, input + address) == 1);
	memcpy(input + 2 * address, ports, sizeof(ports));
	CHECK_EQUAL(rss_hash(input, 2 * address), v->addresses);
	CHECK_EQUAL(rss_hash(input, 2 * address + 4), v->with_ports);
}

static void published_vectors(void)
{
	for (unsigned i = 0; i < sizeof(IPV4) / sizeof(IPV4[0]); i++)
		check_vector(&IPV4[i], AF_INET, 4);
	for (unsigned i = 0; i < sizeof(IPV6) / sizeof(IPV6[0]); i++)
		check_vector(&IPV6[i], AF_INET6, 16);
}

/* The hash of a frame's own bytes, by definition. */
static uint32_t hash_of(const uint8_t *l2, const struct frame_header *h)
{
	const uint32_t addresses = h->ipv6 ? 32 : 8;
	uint8_t input[RSS_INPUT_MAX];

	memcpy(input, l2 + frame_l4_offset(h) - addresses, addresses);
	memcpy(input + addresses, l2 + frame_l4_offset(h), 4);
	return rss_hash(input, addresses + 4);
}

static void frames_of_all_headers(void)
{
	struct frame_ends ends = {
	        .udp_port = 9, .local_mac = {2, 0, 0, 0, 0, 1}, .remote_mac = {2, 0, 0, 0, 0, 2}};
	uint64_t random = 1;
	struct rss rss;
	uint8_t l2[256];

	inet_pton(AF_INET, "10.0.0.1", &ends.local_ip);
	inet_pton(AF_INET, "10.0.0.2", &ends.remote_ip);
	for (unsigned kind = 0; kind < 8; kind++) {
		ends.header =
		        (struct frame_header){.ipv6 = kind & 1, .tcp = kind & 2, .vlan = kind & 4 ? 7 : 0};
		rss_prepare(&rss, &ends, 3);
		frame_write_headers(l2, &ends, 128);
		CHECK_EQUAL(rss_frame_hash(&rss, l2), hash_of(l2, &ends.header));
		for (unsigned i = 0; i < 1000; i++) {
			struct in_addr source = {.s_addr = (uint32_t)check_random(&random)};

			frame_set_source_ip(l2, &ends.header, source);
			frame_set_source_port(l2, &ends.header, (uint16_t)check_random(&random));
			CHECK_EQUAL(rss_frame_hash(&rss, l2), hash_of(l2, &ends.header));
			CHECK_EQUAL(rss_queue(&rss, l2), (hash_of(l2, &ends.header) & 127) % 3);
		}
	}
}

/* Four queues each get about a quarter of many flows, one queue gets all. */
static void flows_are_spread(void)
{
	struct frame_ends ends = {.udp_port = 9};
	uint32_t frames[4] = {0};
	struct rss rss;
	uint8_t l2[256];

	rss_prepare(&rss, &ends, 4);
	frame_write_headers(l2, &ends, 64);
	for (uint32_t flow = 1; flow <= 4096; flow++) {
		frame_set_source_ip(l2, &ends.header, (struct in_addr){htonl(0x64400000u + flow)});
		frames[rss_queue(&rss, l2)]++;
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK(frames[i] > 900 && frames[i] < 1150);
	rss_prepare(&rss, &ends, 1);
	CHECK_EQUAL(rss_queue(&rss, l2), 0);
}

int main(void)
{
	published_vectors();
	frames_of_all_headers();
	flows_are_spread();
	return 0;
}
