# SPDX-License-Identifier: BSD-3-Clause
"""Options of functions and noisy neighbours that change nothing for the selected cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options, find_unused
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application, Startup
from pytest_icbench.plugin.third_party import find_components, find_unused_options

STARTUP = Case("veth", Startup("netns:10"), dimension="startup")
REDIS = Case("veth", Application("redis"), dimension="application")
PLAIN, WIRE = Case("veth"), Case("veth", function="wire")


@pytest.mark.parametrize(
    ("given", "silent", "heard"),
    [
        ({"noisy_neighbour": ("stream",)}, (STARTUP, REDIS), PLAIN),
        ({"function": ("wire",)}, (STARTUP, REDIS), PLAIN),
        ({"chain": (5,)}, (PLAIN, REDIS), WIRE),
        ({"cpu_share": ("50:50",)}, (PLAIN, STARTUP), WIRE),
        ({"cpu_quota": ("50:50",)}, (PLAIN, STARTUP), WIRE),
        ({"function_count": (2,)}, (PLAIN, REDIS), WIRE),
    ],
)
def test_it_is_reported_unless_one_case_has_a_use_for_it(
    given: dict[str, Any], silent: tuple[Case, ...], heard: Case
) -> None:
    name = next(iter(given)).replace("_", "-")
    (said,) = find_unused(Options(**given), silent)
    assert said.startswith(f"--icbench-{name} has no effect: no selected case ")
    assert find_unused(Options(**given), [*silent, heard]) == []
    assert find_unused(Options(**given), []) == []


def test_a_program_is_a_switchs_or_that_of_a_function() -> None:
    options = Options(binaries={"suricata": Path("/x"), "vpp": Path("/x"), "ovs": Path("/x")})
    cases = [Case("veth", function="inspect"), Case("ovs")]
    assert find_components(cases) == {"suricata"}
    assert find_unused_options(options, cases) == ["--icbench-binary vpp has no effect: no selected case is of vpp"]
    assert find_components([Case("veth", function="nat")]) == {"linux", "ovs", "ip_pipeline", "vpp"}
    assert find_components([Case("ovs")]) == set()
