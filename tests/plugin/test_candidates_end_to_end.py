# SPDX-License-Identifier: BSD-3-Clause
"""Whatever differs, side by side on the real host: a test each, of what the candidate's side really had. Needs root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.snapshot import left_since, take
from tests.plugin.conftest import Runner

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]

QUICK = [
    *("--icbench-repeats=1", "--icbench-duration=0.1", "--icbench-warmup=0"),
    # Nobody compares figures: it does not wait until both sides have the same state of the host.
    *("--icbench-window=0.05", "--icbench-drain=0.1", "--icbench-max-duration=1"),
]
CASE = """
import pathlib

@pytest.mark.icbench(switch="{switch}", rate=1000, reference=False{more})
def test_a(icbench):
    measured = icbench.measure()
    assert measured.verdict != "INVALID", measured.evidence
"""


@pytest.fixture(autouse=True)
def unchanged_host() -> Iterator[None]:
    """Whatever a test does, the host is afterwards as it was."""
    before = take()
    yield
    assert left_since(before) == []


def measured(inner: Runner, mode: str, switch: str = "linux-bridge", more: str = "", *options: str) -> Any:
    """Returns base and candidate of a comparison."""
    inner.write(test_x=CASE.format(switch=switch, more=more))
    inner.spawn(f"--icbench-candidate={mode}", *QUICK, *options).assert_outcomes(passed=1)
    lines = (inner.path / "reports" / "latest" / "results.jsonl").read_text().splitlines()
    base, now = map(json.loads, lines)
    assert now["side_by_side"]["base"] == base["case"]
    return base, now


def test_a_kernel_option_holds_while_its_side_runs(inner: Runner) -> None:
    path = Path("/proc/sys/net/core/busy_read")
    before = path.read_text()
    _, now = measured(inner, f"host:poll=sysctl:net.core.busy_read={int(before) + 50}")
    assert path.read_text() == before
    assert now["treatment"]["candidate"] == {
        "target": "host",
        "kind": "sysctl",
        "value": f"net.core.busy_read={int(before) + 50}",
    }


def test_a_value_that_the_kernel_refuses_is_one_sentence(inner: Runner) -> None:
    inner.write(test_x=CASE.format(switch="linux-bridge", more=""))
    result = inner.spawn("--icbench-candidate=host:poll=sysctl:net.core.busy_read=many", *QUICK)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*kernel option net.core.busy_read cannot be many: Invalid argument"])


def test_another_api_of_the_endpoints(inner: Runner) -> None:
    base, now = measured(inner, "workload:raw=api:raw")
    assert now["case"].startswith("linux-bridge:raw-")
    assert now["treatment"]["candidate"]["value"] == "raw"
    assert base["treatment"]["candidate"] is None


def test_another_kind_of_nodes(inner: Runner) -> None:
    base, now = measured(inner, "workload:bare=node:netns")
    assert (base["treatment"]["node"], now["treatment"]["node"]) == ("lxc", "netns")


def test_an_image_with_a_workload_of_its_own(inner: Runner, tmp_path: Path) -> None:
    from pytest_icbench.driver.workload.executable import workload_path

    image = tmp_path / "image"
    (image / "usr/local/bin").mkdir(parents=True)
    (image / "etc").mkdir()
    for name in ("lib", "lib64"):
        (image / name).symlink_to(f"usr/{name}")
    program = image / "usr/local/bin/icbench-workload"
    shutil.copy2(workload_path(), program)
    copy_libraries(program, image)
    _, now = measured(inner, f"workload:old=image:{image}")
    assert now["treatment"]["candidate"] == {"target": "workload", "kind": "image", "value": "image"}


def copy_libraries(program: Path, image: Path) -> None:
    """Copies what a program is linked with to the same places of an image."""
    shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for name in re.findall(r"(?:=> )?(/\S+) \(0x", shown):
        target = image / Path(name).parent.resolve().relative_to("/") / Path(name).name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, target)


@pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="needs testpmd: apt install dpdk-dev")
def test_libraries_of_a_switch(inner: Runner, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for library in Path("/usr/lib").glob("*-linux-gnu/librte_mempool.so.*"):
        shutil.copy2(library, tmp_path / "lib")
    _, now = measured(inner, f"testpmd:own=lib:{tmp_path / 'lib'}", "testpmd")
    assert now["treatment"]["candidate"] == {"target": "testpmd", "kind": "lib", "value": "lib"}


def test_the_configuration_of_a_function(inner: Runner) -> None:
    (inner.path / "rules.toml").write_text(
        'nft = "table ip more { chain c { type filter hook forward priority 5; }; };"\n'
    )
    base, now = measured(inner, "function:linux:rules=config:rules.toml", more=', functions="route"')
    assert base["treatment"]["function"]["user_config"] is None
    assert now["treatment"]["function"]["user_config"]["file"] == "rules.toml"
    assert base["software"]["component"] == "linux"
    assert (base["software"]["function_config"], bool(now["software"]["function_config"])) == ({}, True)


# Three sessions have to be of one state of the host, whose CPUs may move meanwhile: nobody asks how far apart they are.
SLOW = """
from pytest_icbench.host.resource.cpu_meter import CpuMeter
from pytest_icbench.model.placement import CpuState

CpuMeter.read = lambda *_: CpuState()

@pytest.mark.icbench(switch="forward-raw", mode="delay100us", rate=1000, burst=4, dimension="latency",
                     repeats=6, warmup=0.05, duration=0.2, drain=0.5, reference=False)
def test_a(icbench):
    icbench.gate(icbench.latency())
"""


def test_a_possible_regression_is_measured_beside_the_old_program(inner: Runner, tmp_path: Path) -> None:
    from pytest_icbench.driver.workload.executable import workload_path

    old, new = tmp_path / "forward-1", tmp_path / "forward-2"
    shutil.copy2(workload_path(), old)
    new.write_text(f'#!/bin/bash\nexec {old} "${{@/#100/40000}}"\n')
    new.chmod(0o755)
    inner.write(test_x=SLOW)
    for _ in range(3):
        inner.spawn(f"--icbench-binary=forward-raw={old}", "--icbench-save=main").assert_outcomes(passed=1)
    result = inner.spawn(f"--icbench-binary=forward-raw={new}", "--icbench-compare=main")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*: measured side by side with the baseline's version, which differs in forward-raw"])
    now = json.loads((inner.path / "reports" / "latest" / "results.jsonl").read_text().splitlines()[-1])
    assert (now["verdict"], now["decision"]) == ("REGRESSED", "REGRESSED")
    assert now["side_by_side"]["base"] == "forward-raw:delay100us:before-64B-b4-1vs1-R1k"
    assert now["side_by_side"]["ratio"] > 1.5
