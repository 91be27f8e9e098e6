# SPDX-License-Identifier: BSD-3-Clause
"""How much sooner a sweep ends on two testbeds than on one: workers of pytest-xdist over ssh, set-up included.

The testbeds are namespaces of this machine behind an sshd each (``tests/second_host.py``), so they share its CPUs: the
cases are at 10,000 frames per second, which leaves most of them idle. Needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.second_host import SecondHost, second_host, unsupported_reason

CASES = 20
ROUNDS = 3
SCENARIO = """
import pytest

@pytest.mark.icbench(switch="linux-bridge", api="raw", packet_size=[{sizes}], rate="10k", burst=1,
                     repeats=2, warmup=0.1, duration=0.3, drain=0.1)
def test_rate(icbench):
    icbench.gate(icbench.throughput())
"""


def sweep(directory: Path, hosts: list[SecondHost]) -> float:
    """Seconds from the start of pytest to its end, for all cases on these hosts."""
    argv = [sys.executable, "-P", "-m", "pytest", "-q", "--dist=load", "-p", "no:cacheprovider"]
    for host in hosts:
        spec = f"ssh=root@{host.address}//ssh_config={host.directory}/ssh_config//python={sys.executable}"
        argv += ["--tx", f"{spec}//chdir=/run/work"]
    argv += [f"--rsyncdir={directory / 'scenarios'}", str(directory / "scenarios/test_x.py")]
    began = time.monotonic()
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    took = time.monotonic() - began
    lines = (directory / "scenarios/reports/latest/results.jsonl").read_text().splitlines()
    measured = {json.loads(line)["case"] for line in lines}
    if done.returncode or len(measured) != CASES:
        raise SystemExit(f"{len(measured)} of {CASES} cases were measured:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    if (reason := unsupported_reason()) is not None:
        raise SystemExit(f"left out: {reason}")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "scenarios").mkdir()
        sizes = ", ".join(str(64 + 16 * number) for number in range(CASES))
        (directory / "scenarios/test_x.py").write_text(SCENARIO.format(sizes=sizes))
        (directory / "scenarios/pytest.ini").write_text("[pytest]\nicbench_node = netns\nicbench_reference = no\n")
        with second_host(directory, 1) as first, second_host(directory, 2) as second:
            taken: dict[int, list[float]] = {1: [], 2: []}
            for number in range(rounds):
                for count in (1, 2) if number % 2 else (2, 1):
                    taken[count].append(sweep(directory, [first, second][:count]))
                    print(f"round {number + 1}: {count} testbeds, {taken[count][-1]:.1f} s", flush=True)
    one, two = (statistics.median(taken[count]) for count in (1, 2))
    verdict = "held" if two <= 0.6 * one else "missed"
    print(
        f"{CASES} cases: {one:.1f} s on one testbed, {two:.1f} s on two: {two / one:.2f} of it (0.6 at most: {verdict})"
    )


if __name__ == "__main__":
    main()
