# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios over two hosts (A5, A7, A9), in a short form, over the cable to a second host of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.node_tools import require
from tests.host.remote_runs import Run, clean_on_both
from tests.second_host import SecondHost, other, unsupported_reason

__all__ = ["other"]  # a fixture

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason())),
]

SCENARIOS = (Path(__file__).parents[2] / "scenarios" / "test_two_hosts.py").read_text()
#: Both hosts share this machine's CPUs: a VPP gives up when one of its workers does not run for long, and two do not
#: fit beside their endpoints.
VPP = shutil.which("vpp")
ENOUGH_CPUS = 4
VPP_HERE = pytest.mark.skipif(
    VPP is None or len(os.sched_getaffinity(0)) < ENOUGH_CPUS,
    reason=f"two VPPs on one machine take {ENOUGH_CPUS} CPUs, and vpp on PATH",
)
SHORT = (
    "--icbench-placement=cooperative",
    "--icbench-repeats=1",
    "--icbench-max-duration=1",
    "--icbench-duration=1",
    "--icbench-warmup=0.1",
    "--icbench-drain=0.3",
)
#: Both hosts' switches poll on the same CPUs here: at this rate each has time for every frame.
FEW = ("--icbench-rate=1k", "--icbench-packet-size=64", "--icbench-burst=4")


#: Both hosts' sessions take their huge pages from one pool here, and each sees what the other is about to use as free.
_POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
_PAGES = 640


@pytest.fixture(autouse=True)
def enough_for_both() -> Iterator[None]:
    """Huge pages for two hosts, given back afterwards."""
    before = _POOL.read_text()
    _POOL.write_text(str(int(before) + _PAGES))
    try:
        if int(_POOL.read_text()) < int(before) + _PAGES:
            pytest.skip(f"this machine has no memory for {_PAGES} more huge pages, which two hosts take")
        yield
    finally:
        _POOL.write_text(before)


def run(directory: Path, other: SecondHost, *arguments: str) -> set[tuple[str, str, int]]:
    """Dimension, switch and pairs of the cases that were measured, each of them a number."""
    vpp = [f"--icbench-binary=vpp={VPP}"] if VPP else []
    with clean_on_both(other):
        found = Run(directory, other, "--icbench-node=lxc", *SHORT, *FEW, *vpp, *arguments, scenario=SCENARIOS)
        assert found.wait(150) == 0, found.output
    for result in found.results():
        assert result["verdict"] != "INVALID", (result["case"], result["reason"])
        assert result["figures"]["received"] > 0
        assert result["case"].endswith("-remote")
    return {(each["dimension"], each["switch"], each["case"].count("2vs2") + 1) for each in found.results()}


@pytest.mark.parametrize(
    "names", [("linux-bridge", "direct", "ovs"), pytest.param(("vpp",), marks=VPP_HERE)], ids=" ".join
)
def test_one_pair_by_every_switch_and_by_the_cable_itself(
    other: SecondHost, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """A5, A9."""
    require("lxc")
    measured = run(tmp_path, other, f"--icbench-switch={' '.join(names)}", "-k", "flat_out or round_trip")
    assert measured == {(dimension, name, 1) for dimension in ("throughput", "latency") for name in names}


@pytest.mark.parametrize("names", [("linux-bridge", "ovs"), pytest.param(("vpp",), marks=VPP_HERE)], ids=" ".join)
def test_several_pairs_share_the_cable(other: SecondHost, tmp_path: Path, names: tuple[str, ...]) -> None:
    """A7."""
    require("lxc")
    chosen = f"--icbench-switch={' '.join(names)}"
    measured = run(tmp_path, other, chosen, "--icbench-pairs=2", "-k", "pairs_between and published")
    assert measured == {("throughput", name, 2) for name in names}
