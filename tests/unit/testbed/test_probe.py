# SPDX-License-Identifier: BSD-3-Clause
"""What a case's application adds to the facts of its results."""

from __future__ import annotations

import shutil

import pytest

from pytest_icbench.driver.application.protocol import Program
from pytest_icbench.driver.application.redis import Redis
from pytest_icbench.errors import Unsupported
from pytest_icbench.measure.summary.gathered import LaunchLog
from pytest_icbench.measure.summary.summarize import Environment, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed import probe


@pytest.mark.parametrize(("app", "metric"), [("redis_open", "open-loop"), ("redis", "closed-loop")])
def test_a_result_without_any_launch_has_the_metric_of_its_application(
    monkeypatch: pytest.MonkeyPatch, app: str, metric: str
) -> None:
    monkeypatch.setattr(probe, "program_versions", lambda *_: {"redis-server": "7.0"})
    case = Case("veth", Application(app), dimension="application")
    chosen, around = probe.add_application(case, Environment("dedicated", ()))
    assert chosen is not None
    assert around.treatment == {"application": {"redis-server": "7.0"}}
    gathered = LaunchLog(launches=[], invalid=("process-died", "the server could not be started"))
    assert summarize(case, Settings(), gathered, around).metric == metric


@pytest.mark.parametrize(("command", "reported"), [(("echo", "3.7.2-8"), "3.7.2-8"), (("icbench-none",), "unknown")])
def test_a_program_that_does_not_tell_its_version_has_another_tell_it(command: tuple[str, ...], reported: str) -> None:
    program = Program("true", "coreutils", version_command=command)

    class Silent(Redis):
        server = client = program

    assert probe.program_versions(Silent) == {"true": reported}


def test_a_program_that_a_container_does_not_see_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/opt/bin/{name}")
    with pytest.raises(Unsupported, match=r"/opt/bin/redis-server, and a container has only /usr: .*node netns"):
        probe.probe_application("redis", "lxc")
