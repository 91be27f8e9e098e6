#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""client and server against sockperf ping-pong --full-rtt: 64-byte frames over veth, one at a time, both ends polling.

Between two network namespaces at the same rate, low enough that a frame is back before the next one leaves. The UDP
sockets of both are connected.
"""

from __future__ import annotations

import sys

import bench_host as host
import paired
import udp_tools


def main() -> int:
    """Compares the medians; exits 1 if they are not alike."""
    parser = host.parser(__doc__)
    # Near what ping-pong does without a limit: a polling program that idles longer lets its path through the kernel
    # grow cold, and the two idle differently.
    parser.add_argument("--rate", type=int, default=60000, help="frames per second (default %(default)s)")
    arguments = parser.parse_args()
    binary, cpus = host.workload(arguments), host.cpus(arguments, 2)
    host.program("sockperf", "sockperf")
    with host.namespaces() as names, udp_tools.connected_sockets() as connected:
        pair = udp_tools.Pair(names, cpus, arguments.seconds)
        result = paired.alternate(
            "rtt p50 against sockperf",
            paired.Plan(arguments.pairs, arguments.repeat, "µs", 1e3, confidence=0.9),
            lambda: udp_tools.workload_rtt_ns(pair, binary, arguments.rate),
            lambda: udp_tools.sockperf_rtt_ns(pair, arguments.rate, connected),
        )
    return 0 if paired.verdict(result, within=(0.9, 1.1)) else 1


if __name__ == "__main__":
    sys.exit(main())
