# SPDX-License-Identifier: BSD-3-Clause
"""What --icbench-remote and --icbench-uplink do to a session before any host is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.conftest import Runner

SCENARIOS = Path(__file__).parents[2] / "scenarios"
TWO_HOSTS = ("--icbench-remote=root@lab2", "--icbench-uplink=eth1")


def test_all_scenarios_can_be_run_over_two_hosts(inner: Runner) -> None:
    result = inner.run("--collect-only", "-q", *TWO_HOSTS, "-m", "published or not published", SCENARIOS)
    assert result.ret == 0
    assert any("test_longest_train[basicfwd-" in line for line in result.outlines)


PLAIN = """
@pytest.mark.icbench(switch=["basicfwd", "direct"], pairs=[1, 2])
def test_a(icbench): pass
"""


def test_what_cannot_be_on_two_hosts_is_skipped_with_its_reason(inner: Runner) -> None:
    """Nobody is connected to: only what can be there asks for the second host."""
    inner.write(test_x=PLAIN)
    result = inner.spawn("--icbench-plan", "-v", *TWO_HOSTS, "-k", "not direct-64B-b32-1vs1")
    assert result.ret == 0
    skips = sorted(line.partition(": ")[2] for line in result.outlines if line.strip().startswith("skip"))
    assert skips == [
        "basicfwd cannot reach a second host: it runs without --icbench-remote",
        "basicfwd cannot reach a second host: it runs without --icbench-remote",
        "direct takes at most 1 pair over its uplink, not 2",
    ]


@pytest.mark.parametrize(
    ("marker", "arguments", "said"),
    [
        ("switch='basicfwd', remote=True", (), "test_x.py::test_a: basicfwd cannot reach a second host"),
        ("switch='direct', pairs=2, remote=True", (), "test_x.py::test_a: direct takes at most 1 pair over its uplink"),
        ("switch='all'", ("--icbench-switch=snabb",), "test_x.py::test_a: snabb cannot reach a second host"),
    ],
)
def test_what_was_itself_asked_for_is_a_mistake(
    inner: Runner, marker: str, arguments: tuple[str, ...], said: str
) -> None:
    inner.write(test_x=f"@pytest.mark.icbench({marker})\ndef test_a(icbench): pass")
    result = inner.run("--collect-only", *TWO_HOSTS, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


def test_a_mistyped_host_is_reported_before_anything_is_done(inner: Runner) -> None:
    inner.write(test_x=PLAIN)
    result = inner.run("--icbench-remote=root@lab2", "--icbench-uplink=eth1 lab3=enp4s0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "--icbench-uplink: it names lab3, but the second host is root@lab2: write lab2=NIC"
    assert said in result.stderr.str()


@pytest.mark.parametrize("hosts", [(), TWO_HOSTS])
def test_what_other_hosts_would_run_is_collected_here(inner: Runner, hosts: tuple[str, ...]) -> None:
    """xdist distributes no collection: the cases are this process's own, and no host is connected to."""
    inner.write(test_x="@pytest.mark.icbench(switch='direct')\ndef test_a(icbench): pass")
    result = inner.spawn("-p", "xdist.plugin", "--collect-only", "-q", "-d", "--tx", "ssh=root@lab1", *hosts)
    assert (result.ret, result.stderr.str()) == (0, "")
    assert any("test_a[direct-64B-b32-1vs1-Rmax" in line for line in result.outlines)
