# SPDX-License-Identifier: BSD-3-Clause
"""What ten network functions add to a rig, beyond the ten containers that they are in.

Builds and closes, in turn, a rig of ten pairs, the same with ten functions, and ten containers alone. Prints medians
with 95 % intervals. Ends with 1 if functions add a second or more to what the containers take. Needs root and a quiet
machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from pytest_icbench.driver.function.registry import component_behind
from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.model.case import Case
from pytest_icbench.stats.intervals import interpolated
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

#: Seconds that ten functions may add to ten containers.
LIMIT_S = 1.0
PAIRS = 10
CASES = (
    Case("linux-bridge", function="route", pairs=PAIRS),
    Case("linux-bridge", function="nat+acl10+deny30", pairs=PAIRS),
    Case("linux-bridge", function="wire", pairs=PAIRS),
)


def rig_seconds(session: HostSession, case: Case, node: str) -> float:
    """Seconds to build and close a rig. Raises Unsupported."""
    switch = builtin_switches()[case.switch]
    switch().probe(session, None)
    workers = switch().needs(case.path.wires_count, case.resolved_cores(switch)).pollers
    pollers = 0
    if case.function is not None:
        component = component_behind(switch, case.resolved_port(switch), case.function)
        component().probe(session, case.function)
        pollers = case.pairs if component.polls else 0
    count = len(case.path.endpoints)
    placement = plan(Topology.read(session.root), workers=workers, endpoints=count + pollers, policy="auto")
    placement = replace(placement, endpoints=placement.endpoints[:count], functions=placement.endpoints[count:])
    rig = Rig(case, placement, session, node)
    began = time.monotonic()
    try:
        rig.build()
    finally:
        rig.close()
    return time.monotonic() - began


def containers_seconds(session: HostSession, node: str) -> float:
    """Seconds to start and stop ten containers."""
    cpu = Topology.read(session.root).usable[0].id
    began = time.monotonic()
    nodes = [make_node(node, session, NodeSpec(session.name(f"n{number}"), [cpu])) for number in range(PAIRS)]
    for each in nodes:
        each.start()
    for each in nodes:
        each.stop()
    return time.monotonic() - began


def shown(estimate: Estimate) -> str:
    interval = "" if estimate.low is None else f" ({estimate.low:.2f} … {estimate.high:.2f})"
    return f"{estimate.value:5.2f}{interval}"


def rounds(session: HostSession, case: Case, node: str, count: int) -> Iterator[tuple[float, float, float]]:
    """Yields the seconds of a rig without functions, with them, and of the containers alone."""
    plain = replace(case, function=None)
    of: tuple[Callable[[], float], ...] = (
        lambda: rig_seconds(session, plain, node),
        lambda: rig_seconds(session, case, node),
        lambda: containers_seconds(session, node),
    )
    for _ in range(count):
        without, with_functions, containers = (measure() for measure in of)
        yield without, with_functions, containers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="rigs of each kind (default: %(default)s)")
    parser.add_argument("--node", default="lxc", help="lxc or netns (default: %(default)s)")
    arguments = parser.parse_args()
    failed = False
    print(f"{'case':<44}{'rig without':<22}{'rig with':<22}{'containers':<22}more than these, limit {LIMIT_S} s")
    with HostSession(UNDO_KINDS) as session:
        for case in CASES:
            try:
                found = list(rounds(session, case, arguments.node, arguments.rounds))
            except Unsupported as reason:
                print(f"{case.id:<44}{reason}")
                continue
            columns = [interpolated(column) for column in zip(*found, strict=True)]
            added = interpolated([with_ - without - alone for without, with_, alone in found])
            failed = failed or added.value >= LIMIT_S
            texts = (f"{shown(column):<22}" for column in columns)
            print(f"{case.id:<44}{''.join(texts)}{shown(added)}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
