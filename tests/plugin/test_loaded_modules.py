# SPDX-License-Identifier: BSD-3-Clause
"""Collection loads what its cases need, and no more."""

from __future__ import annotations

import re

from tests.plugin.conftest import Runner

PROBE = """
import sys

def pytest_unconfigure(config):
    print("OURS", sorted(name for name in sys.modules if name.startswith("pytest_icbench")))
"""


def loaded(inner: Runner, *arguments: str) -> str:
    """The modules of ours that collecting a rate over two switches has loaded, as a list's text."""
    inner.pytester.makeconftest(PROBE)
    inner.write(test_x="@pytest.mark.icbench(switch=['ovs', 'veth'])\ndef test_a(icbench): pass")
    ours = re.search(r"OURS (.*)", inner.spawn("--collect-only", "-q", *arguments).stdout.str())
    assert ours is not None
    return ours[1]


def test_what_no_case_needs_is_not_loaded(inner: Runner) -> None:
    ours = loaded(inner)
    assert "pytest_icbench.driver.switch.registry" in ours
    for unused in ("driver.function", "driver.node.registry", "gate.limits", "model.measurement", "measure", "testbed"):
        assert f"pytest_icbench.{unused}" not in ours


def test_what_an_option_asks_for_is_loaded(inner: Runner) -> None:
    ours = loaded(inner, "--icbench-function=wire", "--icbench-node=netns")
    for used in ("driver.function.registry", "driver.node.registry"):
        assert f"pytest_icbench.{used}" in ours
