#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""send to recv against iperf3 -u and sockperf throughput: 64-byte frames over veth, by each way to use a socket.

Between two network namespaces, sender and receiver on a core of their own. What counts is what is delivered.
"""

from __future__ import annotations

import sys
from functools import partial

import bench_host as host
import paired
import udp_tools

#: The bound of the ratio's interval by API technique.
AT_LEAST = {"udp-mmsg": 1.0, "xdp": 2.0, "udp-gso": 10.0}


def main() -> int:
    """Compares with both tools; exits 1 if a bound is not kept."""
    parser = host.parser(__doc__)
    parser.add_argument("--burst", type=int, default=64)
    parser.add_argument(
        "--api", action="append", choices=AT_LEAST, help="only this technique; may be repeated (default: all)"
    )
    arguments = parser.parse_args()
    binary, cpus, kept = host.workload(arguments), host.cpus(arguments, 2), True
    host.program("iperf3", "iperf3")
    host.program("sockperf", "sockperf")
    with host.namespaces() as names:
        pair = udp_tools.Pair(names, cpus, arguments.seconds)
        for api in arguments.api or AT_LEAST:
            for name, theirs in (
                ("iperf3 -u", udp_tools.iperf3_rate),
                ("sockperf throughput", udp_tools.sockperf_rate),
            ):
                result = paired.alternate(
                    f"{api} against {name}",
                    paired.Plan(arguments.pairs, arguments.repeat, "Mpps", 1e6),
                    partial(udp_tools.workload_rate, pair, binary, api, arguments.burst),
                    partial(theirs, pair),
                )
                kept &= paired.verdict(result, at_least=AT_LEAST[api])
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
