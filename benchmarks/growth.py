# SPDX-License-Identifier: BSD-3-Clause
"""How the harness grows: seconds of a rig, a launch and a teardown, and memory, over the number of pairs of containers.

Prints a row for each number of pairs that the host can run, and the slope of a straight line through them. Ends with 1
if the last containers added cost more than twice that slope each. Needs root and a quiet machine.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import IcbenchError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

#: Frames per second of each pair: what the frames themselves cost is not looked for. Endpoints of the kernel's switches
#: sleep between them, since 128 that poll on two CPUs wait for each other.
RATE_PPS = 100
SETTINGS = Settings(warmup_s=0.1, duration_s=0.2, drain_s=0.5, repeats=1)
#: Times the slope that the last containers may cost.
MOST = 2.0
COLUMNS = {
    "rig_s": "rig s",
    "first_s": "first s",
    "launch_s": "launch s",
    "teardown_s": "teardown s",
    "memory_mib": "MiB",
}


@dataclass(frozen=True)
class Row:
    """What so many pairs cost.

    Attributes:
        first_s: the first launch, by which a switch learns of all endpoints, beyond warm-up, windows and drain.
        launch_s: the quicker of two after it, likewise.
    """

    containers: int
    rig_s: float
    first_s: float
    launch_s: float
    teardown_s: float
    memory_mib: float


def available_mib() -> float:
    """Memory that could be had without swapping, free huge pages included."""
    text = Path("/proc/meminfo").read_text()
    values = {name: int(value) for name, value in re.findall(r"^(\w+): +(\d+)", text, re.MULTILINE)}
    return (values["MemAvailable"] + values["HugePages_Free"] * values["Hugepagesize"]) / 1024


def measure(session: HostSession, switch: str, pairs: int, node: str) -> Row:
    driver = builtin_switches()[switch]
    case = Case(switch, Frames(burst=1, rate=Rate(RATE_PPS)), pairs=pairs, blocking=driver.family == "kernel")
    driver().probe(session, None)
    workers = driver().needs(pairs, case.resolved_cores(driver)).pollers
    placement = plan(Topology.read(session.root), workers=workers, endpoints=2 * pairs, policy="auto")
    rig = Rig(case, placement, session, node)
    before, began = available_mib(), time.monotonic()
    rig.build()
    try:
        built = time.monotonic()
        first_s, *later = [run_launch(rig, case, SETTINGS, index=number).overhead_s for number in range(3)]
        taken = before - available_mib()
    finally:
        ended = time.monotonic()
        rig.close()
    return Row(2 * pairs, built - began, first_s, min(later), time.monotonic() - ended, taken)


def slope(rows: list[Row], name: str) -> float:
    """What one more container costs, by least squares."""
    mean_x = sum(row.containers for row in rows) / len(rows)
    mean_y = sum(getattr(row, name) for row in rows) / len(rows)
    rise = sum((row.containers - mean_x) * (getattr(row, name) - mean_y) for row in rows)
    return float(rise / sum((row.containers - mean_x) ** 2 for row in rows))


def flat(rows: list[Row], name: str, each: float) -> bool:
    """Whether the step to the most pairs costs about as much per container as all steps together."""
    last, before = rows[-1], rows[-2]
    step = (getattr(last, name) - getattr(before, name)) / (last.containers - before.containers)
    return bool(step <= MOST * max(each, 0.0) or step <= 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="*", default=[1, 4, 16, 64], help="ascending (default: 1 4 16 64)")
    parser.add_argument("--switch", nargs="*", default=["linux-bridge", "ovs"], help="default: linux-bridge ovs")
    parser.add_argument("--node", default="lxc", help="lxc or netns (default: %(default)s)")
    arguments = parser.parse_args()
    failed = False
    with HostSession(UNDO_KINDS) as session:
        for switch in arguments.switch:
            print(f"{switch:>14}" + "".join(f"{title:>12}" for title in COLUMNS.values()), flush=True)
            rows = []
            for pairs in arguments.pairs:
                try:
                    rows.append(measure(session, switch, pairs, arguments.node))
                except IcbenchError as reason:  # so many need more CPUs or memory than there are
                    print(f"{f'{pairs}vs{pairs}':>14}  {str(reason).splitlines()[0][-100:]}", flush=True)
                    break
                values = "".join(f"{getattr(rows[-1], name):12.2f}" for name in COLUMNS)
                print(f"{f'{pairs}vs{pairs}':>14}{values}", flush=True)
            if len(rows) > 1:
                slopes = {name: slope(rows, name) for name in COLUMNS}
                print(f"{'per container':>14}" + "".join(f"{each:12.4f}" for each in slopes.values()))
                for name in (name for name, each in slopes.items() if not flat(rows, name, each)):
                    print(f"{'':14}{COLUMNS[name]}: a container costs more the more there are", file=sys.stderr)
                    failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
