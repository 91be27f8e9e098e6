# SPDX-License-Identifier: BSD-3-Clause
"""VPP's functions on the real host: skipped where there is no VPP on PATH, and how to build one is said."""

from __future__ import annotations

import re

import pytest

from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.driver.function.vpp import VppFunction
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.flows import NEW
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.host.function_tools import SHORT, WireWithoutProgram, in_place, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = [pytest.mark.alone, pytest.mark.slow]

VETH = {"switch": "linux-bridge", "api": "udp-mmsg", "load": Frames(rate=Rate(5000))}
MEMIF = {"switch": "testpmd", "port": "memif", "load": Frames(rate=Rate(20_000))}
ACL_DROPS = {"vpp+acl1000+deny30": 30, "vpp+nat+acl10+deny30": 3}


@pytest.mark.parametrize(
    ("function", "path"),
    [
        ("vpp+route", VETH),
        ("route", MEMIF),
        ("vpp+nat", VETH),
        ("nat", MEMIF),
        ("nat", {**MEMIF, "switch": "direct"}),
        ("vpp+acl1000+deny30", VETH),
        ("vpp+nat+acl10+deny30", VETH),
    ],
)
def test_a_function_of_vpp_does_its_work(session: HostSession, function: str, path: dict[str, object]) -> None:
    case = Case(**path, function=function)  # type: ignore[arg-type]
    with through(session, case) as rig:
        assert rig.prove() is None
        (counter,) = rig.functions()
        assert abs((counter.acl_drops or 0) - ACL_DROPS.get(function, 0)) <= 1
        assert preflight(rig, case, SHORT) is None
        found = measure(Side(rig, case), SHORT)
        functions = rig.host._functions
        assert functions is not None
        assert functions.facts()[0].version.startswith("VPP ")  # type: ignore[union-attr]
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    assert (work.taken or 0) >= found.frames.sent > 0
    assert (work.given or 0) >= found.frames.received > 0
    assert (work.cpu_ns or 0) > 0


def test_vpp_polices_frames_of_a_size(session: HostSession) -> None:
    case = Case("testpmd", Frames(rate=Rate(60_000)), port="memif", function="police20k")
    with through(session, case) as rig:
        assert rig.prove() is None
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    assert (work.acl_drops or 0) > 0


def test_a_table_of_vpp_has_as_many_sessions_as_it_is_set_to(session: HostSession) -> None:
    traffic = Traffic().with_labels(NEW, None)
    case = Case("testpmd", Frames(traffic=traffic, rate=Rate(20_000)), port="memif", function="nat+table2k")
    with through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.evidence) == (None, None)
    (work,) = found.functions or ()
    assert work.sessions == 2000
    assert (work.table_full or 0) >= found.frames.lost > 0


class WireForVpp(WireWithoutProgram, VppFunction):
    """VPP's functions, without VPP."""

    name = "sham"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("vpp+route", "frame 1 of 20 from a .* with TTL 63 .* arrived as .* TTL 64"),
        ("vpp+nat", "frame 1 of 20 from a to b .* has to leave from 198.18.1.16 .* arrived as 198.18.1.1:1024"),
        ("vpp+acl10", "frame 1 of 30 from a to b .* but arrived as"),
        ("vpp+police20k", "frame 1 of 20 from a .* with TTL 63 .* arrived as .* TTL 64"),
    ],
)
def test_a_wire_in_the_place_of_vpp_is_found(session: HostSession, function: str, words: str) -> None:
    case = Case("veth", function=function, api="raw")
    cls: type[Function] = WireForVpp
    with in_place(cls), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search(words, found.evidence or ""), found.evidence


def test_lines_that_vpp_refuses_are_reported_in_its_words(session: HostSession) -> None:
    session.configs = {"function:vpp": {"commands": ["set interface nonsense"]}}
    reported = (
        r"(?s)function vpp\+route of pair 1: vpp refused the command .set interface nonsense.: set interface:"
        r" unk"
    )
    with (
        pytest.raises(ProvisionError, match=reported),
        through(session, Case("veth", function="vpp+route")),
    ):
        pass
