# SPDX-License-Identifier: BSD-3-Clause
"""A firewall a subscriber, on the real host: proven one by one, and counted to the frame."""

from __future__ import annotations

import re
import subprocess

import pytest

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from tests.host.function_tools import through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone

SHORT = Settings(
    max_duration_s=1.0, warmup_s=0.1, duration_s=0.5, window_s=0.05, drain_s=0.5, repeats=1, reference=False
)


@pytest.mark.slow
def test_frames_of_a_client_go_through_its_own_firewall(session: HostSession) -> None:
    case = Case(
        "linux-bridge",
        Frames(traffic=Traffic(64, flows="4"), rate=Rate(4_000)),
        function="subscribers6+firewall+acl10",
        api="raw",
    )
    with through(session, case) as rig:
        with through(session, Case("veth", function="subscribers1", api="raw")) as alone:
            assert alone.prove() is None
        found = measure(Side(rig, case), SHORT)
        assert (found.verdict, found.evidence, found.frames.lost) == (None, None, 0)
        (work,) = found.functions or ()
        assert work.given_each is not None
        first, *others = work.given_each
        assert work.taken == work.given == sum(work.given_each)
        assert max(others) - min(others) <= 1, "clients take turns"
        assert first > max(others) - 1, "control frames are those of the first client"
        assert max(others) * 4 >= found.frames.received > 0
        # The firewall of the third subscriber loses its rules, so it lets pass what it has to deny.
        subprocess.run(["ip", "netns", "exec", namespaces()[2], "nft", "flush", "ruleset"], check=True)
        assert re.search(
            r"frame \d+ of 12 from a to b \(100\.64\.0\.2:10000 .* has to be denied, but arrived as", rig.prove() or ""
        )
    assert namespaces() == []


def namespaces() -> list[str]:
    """Returns the names of the firewalls' network namespaces."""
    shown = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    return sorted(name for name in (line.split()[0] for line in shown.splitlines() if line) if "f1s" in name)
