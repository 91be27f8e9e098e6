# SPDX-License-Identifier: BSD-3-Clause
"""What the harness itself costs: seconds a launch beyond warm-up, windows and drain, and seconds a rig.

Builds a rig of each kind several times, runs short launches on it, and prints medians with 95 % intervals. Ends with 1
if a median is above its limit. Needs root and a quiet machine.
"""

from __future__ import annotations

import argparse
import sys
import time

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.model.case import Case
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

#: Seconds.
LAUNCH_LIMIT, RIG_LIMIT = 0.6, 1.5
CASES = (
    Case("veth"),
    Case("linux-bridge"),
    Case("direct"),
    Case("direct", port="memif"),
    Case("basicfwd"),
    Case("testpmd"),
    Case("ovs"),
)
SETTINGS = Settings(warmup_s=0.1, duration_s=0.2, drain_s=0.2, repeats=1)


def measure_rig(session: HostSession, case: Case, node: str, launches: int) -> tuple[float, list[float]]:
    """Seconds to build, check and close one rig; seconds that each launch on it cost. Raises Unsupported."""
    switch = builtin_switches()[case.switch]
    switch().probe(session, None)
    workers = switch().needs(case.pairs, case.resolved_cores(switch)).pollers
    placement = plan(Topology.read(session.root), workers=workers, endpoints=2 * case.pairs, policy="auto")
    rig = Rig(case, placement, session, node)
    began = time.monotonic()
    rig.build()
    try:
        fault = preflight(rig, case, SETTINGS)
        if fault is not None:
            print(f"{case.id}: {fault[1]}", file=sys.stderr)
        cost = time.monotonic() - began
        found = [run_launch(rig, case, SETTINGS, index=number).overhead_s for number in range(launches)]
    finally:
        ended = time.monotonic()
        rig.close()
    return cost + time.monotonic() - ended, found


def shown(estimate: Estimate, limit: float) -> str:
    interval = "" if estimate.low is None else f" ({estimate.low:.2f} … {estimate.high:.2f})"
    return f"{estimate.value:5.2f}{interval}{'' if estimate.value < limit else '  TOO MUCH'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rigs", type=int, default=6, help="rigs of each kind (default: %(default)s)")
    parser.add_argument("--launches", type=int, default=2, help="launches on each rig (default: %(default)s)")
    parser.add_argument("--node", default="lxc", help="lxc or netns (default: %(default)s)")
    parser.add_argument("--switch", nargs="*", help="only these")
    arguments = parser.parse_args()
    failed = False
    print(f"{'case':<32}{'s a rig':<26}{'s a launch':<26}limits: {RIG_LIMIT} and {LAUNCH_LIMIT}")
    with HostSession(UNDO_KINDS) as session:
        for case in CASES:
            if arguments.switch and case.switch not in arguments.switch:
                continue
            rigs, launches = [], []
            try:
                for _ in range(arguments.rigs):
                    rig, each = measure_rig(session, case, arguments.node, arguments.launches)
                    rigs.append(rig)
                    launches += each
            except Unsupported as reason:
                print(f"{case.id:<32}{reason}")
                continue
            of_rig, of_launch = interpolated(rigs), interpolated(launches)
            failed = failed or of_rig.value >= RIG_LIMIT or of_launch.value >= LAUNCH_LIMIT
            print(f"{case.id:<32}{shown(of_rig, RIG_LIMIT):<26}{shown(of_launch, LAUNCH_LIMIT)}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
