# SPDX-License-Identifier: BSD-3-Clause
"""Which hosts' idle CPUs poll, on recorded trees, and in which cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.driver.node import idle_polling
from pytest_icbench.host.cpu_usage import Quota
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application
from tests.unit.recorded import expand


@pytest.mark.parametrize(("name", "expected"), [("virtual", True), ("acpi-cpufreq", False), ("numa-smt", False)])
def test_only_virtual_cpus_poll(tmp_path: Path, name: str, expected: bool) -> None:
    assert idle_polling.may_poll(expand(name, tmp_path)) is expected


def test_a_quota_is_not_spent_on_idle_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_polling, "find_quotas", lambda *_: [Quota("/job", 1.0, "/job")])
    assert not idle_polling.may_poll(expand("virtual", tmp_path))


def test_cpus_of_cases_that_sleep_halt() -> None:
    assert Case("ovs").polls
    assert Case("vpp", rx_mode="polling").polls
    sleeping = [Case("ovs", wait="adaptive"), Case("vpp", rx_mode="interrupt"), Case("ovs", blocking=True)]
    assert not [case for case in [*sleeping, Case("veth", load=Application("redis"))] if case.polls]
