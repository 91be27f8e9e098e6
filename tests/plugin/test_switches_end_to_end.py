# SPDX-License-Identifier: BSD-3-Clause
"""Switches of user space through the whole plugin: one that dies, and configurations that one refuses. Needs root."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterator

import pytest

from tests.host.snapshot import left_since, take
from tests.plugin.conftest import Runner
from tests.plugin.test_end_to_end import RATE, SHORT, results

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]


@pytest.fixture(autouse=True)
def unchanged_host() -> Iterator[None]:
    """Whatever a test does, the host is afterwards as it was."""
    before = take()
    yield
    assert left_since(before) == []


def test_a_switch_that_dies_between_two_cases_costs_none(inner: Runner) -> None:
    inner.write(
        test_x=f"""
import os, signal
@pytest.mark.icbench(switch=["testpmd", "veth"], packet_size=[64, 128], reference=False, {SHORT})
def test_rate(icbench):
    assert icbench.gate(icbench.throughput())
    if (icbench.case.switch, icbench.case.traffic.packet_size) == ("testpmd", 64):
        process = icbench.rig().host.switch.daemon.process
        process.signal(signal.SIGKILL)
        process.wait(5)
"""
    )
    result = inner.spawn()
    if "2 skipped" in result.stdout.str():
        pytest.skip("testpmd is not installed")
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(["*a switch died between two cases*: testpmd was killed by*"])


REFUSED = {
    "ovs": ('flows = ["priority=10,in_port=1,actions=juggle"]', "*juggle*"),
    "testpmd": ('arguments = ["--juggle"]', "*juggle*"),
    "vpp": ('commands = ["juggle three balls"]', "*vpp refused the command 'juggle three balls': *unknown input*"),
    "vpp at start": ('startup = "juggle { balls 3 }"', "*vpp ended with exit code *", "*juggle*"),
}
TAKEN = {
    "ovs": 'flows = ["priority=10,in_port=1,actions=output:2"]\n[other_config]\npmd-sleep-max = 0\n',
    "testpmd": "burst = 16\n",
}


@pytest.mark.parametrize(
    ("refused", "taken"), [(["ovs", "vpp"], ["testpmd"]), (["testpmd", "vpp at start"], ["ovs"])], ids=" ".join
)
def test_a_configuration_that_a_switch_refuses(inner: Runner, refused: list[str], taken: list[str]) -> None:
    """The switch's own words, and the cases of others run; those that take theirs keep it in the result."""
    texts = {name.split()[0]: REFUSED[name][0] for name in refused} | {name: TAKEN[name] for name in taken}
    for name, text in texts.items():
        (inner.path / f"{name}.toml").write_text(text)
    marker = f"switch={[*texts]}, reference=False, {SHORT}"
    inner.write(test_x=f"@pytest.mark.icbench({marker})\n{RATE[RATE.index('def') :]}")
    result = inner.spawn("--icbench-switch-config", " ".join(f"{name}={name}.toml" for name in texts))
    skipped = result.parseoutcomes().get("skipped", 0)
    if skipped:
        pytest.skip(f"{skipped} of {', '.join(texts)} are not installed")
    result.assert_outcomes(failed=len(refused), passed=len(taken))
    for name in refused:
        result.stdout.fnmatch_lines(REFUSED[name][1:])
    (found,) = results(inner)
    kept = found.treatment["switch"]["user_config"]
    assert kept["sha256"] == hashlib.sha256(TAKEN[taken[0]].encode()).hexdigest()
    assert kept["content"] == tomllib.loads(TAKEN[taken[0]])
