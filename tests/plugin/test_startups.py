# SPDX-License-Identifier: BSD-3-Clause
"""Containers to create on the marker and the command line: cases, ids and mistakes."""

from __future__ import annotations

import fnmatch

import pytest

SCENARIO = """
import pytest

@pytest.mark.icbench(startup={startup!r}{more})
def test_startup(icbench):
    icbench.{call}()
"""


def scenario(pytester: pytest.Pytester, startup: object, *, more: str = "", call: str = "measure") -> None:
    pytester.makepyfile(SCENARIO.format(startup=startup, more=more, call=call))


def collected(pytester: pytest.Pytester, *options: str) -> list[str]:
    result = pytester.runpytest_inprocess("--collect-only", "-q", *options)
    assert result.ret == 0, result.stderr.str()
    return [line.partition("[")[2].rstrip("]") for line in result.outlines if "[" in line]


def test_a_crowd_is_a_case(pytester: pytest.Pytester) -> None:
    scenario(pytester, ["netns:300", "lxc:150", "netns:0300"])
    assert collected(pytester) == ["veth-birth:netns:300-1vs1-Rmax", "veth-birth:lxc:150-1vs1-Rmax"]


def test_the_user_replaces_crowds(pytester: pytest.Pytester) -> None:
    scenario(pytester, "netns:300")
    assert collected(pytester, "--icbench-startup", "fork:7 lxc:9", "--icbench-packet-size", "128") == [
        "veth-birth:fork:7-1vs1-Rmax",
        "veth-birth:lxc:9-1vs1-Rmax",
    ]


def test_another_switch_leaves_them_out(pytester: pytest.Pytester) -> None:
    scenario(pytester, "netns:300")
    result = pytester.runpytest_inprocess("--collect-only", "-q", "--icbench-switch", "linux-bridge")
    result.stdout.fnmatch_lines(["*1 deselected*"])


@pytest.mark.parametrize(
    ("startup", "more", "call", "sentence"),
    [
        ("netns", "", "measure", "*'netns' is not a number of containers; write KIND:N*"),
        ("netns:0", "", "measure", "*'netns:0' is not a number of containers*"),
        ("netns:10001", "", "measure", "*N from 1 to 10,000*"),
        ("nets:5", "", "measure", "*there is no kind of node 'nets'*netns*"),
        ("netns:5", ", packet_size=64, pairs=2", "measure", "*sends no traffic; leave out packet_size, pairs*"),
    ],
)
def test_a_mistake_gets_one_sentence(
    pytester: pytest.Pytester, startup: str, more: str, call: str, sentence: str
) -> None:
    scenario(pytester, startup, more=more, call=call)
    result = pytester.runpytest_inprocess("--collect-only")
    assert result.ret != 0
    assert fnmatch.filter([*result.outlines, *result.errlines], sentence)
