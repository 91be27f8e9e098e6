# SPDX-License-Identifier: BSD-3-Clause
"""A function that does not do its work is found: by its first wrong frame, by a rate, by a cost, or by accounts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.function_parts import Parts
from pytest_icbench.driver.function.gateway import GatewayFunction
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.ovs import OvsFunction
from pytest_icbench.driver.function.protocol import Ends, Function, FunctionSpec, Probe
from pytest_icbench.driver.function.suricata import SuricataFunction
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from tests.host.function_tools import SHORT, UNDISTURBED, Wire, WireWithoutProgram, in_place, through
from tests.host.node_tools import clean, session

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.alone


def test_a_function_that_does_not_swap_is_found_by_its_first_frame(session: HostSession) -> None:
    """The forwarder of ``swap``, with a wire in its place."""

    class Sham(ForwarderFunction):
        name = "sham"

        @classmethod
        def has(cls, function: str) -> bool:
            return function == "sham"

        @classmethod
        def mode(cls, function: str) -> str | None:
            return None

        @classmethod
        def proof(cls, function, ends):  # type: ignore[no-untyped-def]
            return ForwarderFunction.proof("swap", ends)

    case = Case("veth", function="sham", api="raw")
    with in_place(Sham), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert "frame 1 of 20 from a to b (198.18.1.1:1024" in (found.evidence or "")
    assert "has to pass with its MAC addresses swapped, but arrived as" in (found.evidence or "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            "firewall",
            "frame 21 of 40 from b to a .* has to be denied: it is unsolicited, but arrived as 198.18.1.2:5000",
        ),
        ("nat", "frame 1 of 20 from a to b .* has to leave from 198.18.1.16, but arrived as 198.18.1.1:1024"),
        # A train that fits into the rings of virtio, so that nothing else takes a frame of it.
        ("police5k", "of 100 frames at once 100 passed, and its burst of 25 and its rate allow"),
    ],
)
def test_flows_that_do_nothing_are_found(session: HostSession, function: str, words: str) -> None:
    class Nothing(OvsFunction):
        """The functions of ovs by name and proof, without their flows."""

        name = "sham"

        @staticmethod
        def _flows(spec: FunctionSpec) -> list[str]:
            return []

    case = Case("ovs", function=function)
    with in_place(Nothing), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search(words, found.evidence or ""), found.evidence


class WireForLinux(Wire, LinuxFunction):
    """The kernel's functions."""

    name = "sham"


class WireForSuricata(WireWithoutProgram, SuricataFunction):
    """Suricata's functions, without its program."""

    name = "sham"


@pytest.mark.parametrize(
    ("cls", "function", "words"),
    [
        (WireForLinux, "route", "frame 1 of 20 from a .* from 198.18.1.1 with TTL 63 .* arrived as .* TTL 64"),
        (
            WireForLinux,
            "nat",
            "frame 1 of 20 from a to b .* has to leave from 198.18.1.16 .* arrived as 198.18.1.1:1024",
        ),
        (WireForLinux, "acl10", "frame 1 of 30 from a to b .* but arrived as"),
        (
            WireForSuricata,
            "inspect10+deny30",
            "frame 24 of 30 from a .* has to be denied: rule 4 is for it, but arrived as",
        ),
    ],
)
def test_a_wire_in_the_place_of_a_function_is_found(
    session: HostSession, cls: type[Function], function: str, words: str
) -> None:
    case = Case("veth", function=function, api="raw")
    with in_place(cls), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    assert re.search(words, found.evidence or ""), found.evidence


class RouterForLinux(LinuxFunction):
    """A router in the place of a router that does more."""

    name = "sham"

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        super().start(session, replace(spec, function="route"))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("nat", "frame 1 of 20 from a .* has to leave from 198.18.1.16 .* but arrived as 198.18.1.1:1024"),
        ("firewall", "frame 1 of 40 from b .* has to be denied: it is unsolicited, but arrived as 198.18.1.2:5000"),
        ("acl10", "frame 21 of 30 from a .* has to be denied, but arrived as"),
        ("set10+deny30", "frame 24 of 30 from a .* has to be denied, but arrived as"),
        ("police20k", "of 400 frames at once 400 passed, and its burst of 100 and its rate allow"),
        ("shape5Mbit", "frames/s passed, which is not within 2% of the 10,417 that it is set to"),
    ],
)
def test_a_router_that_does_no_more_is_found(session: HostSession, function: str, words: str) -> None:
    case = Case("veth", Frames(rate=Rate(30_000)), function=function, api="raw-mmsg")
    with in_place(RouterForLinux), through(session, case) as rig:
        found = measure(Side(rig, case), UNDISTURBED)
    assert (found.verdict, found.reason) == ("INVALID", "function"), found.evidence
    assert re.search(words, found.evidence or ""), found.evidence


class RouterForGateway(LinuxFunction):
    """A router in the place of one behind whose rules payloads are inspected."""

    name = "sham"

    @classmethod
    def has(cls, function: str) -> bool:
        return GatewayFunction.has(function)

    @classmethod
    def parse(cls, function: str) -> Parts | None:
        return super().parse(function.removesuffix("+inspect50"))

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        return GatewayFunction.proof(function, ends)


def test_a_gateway_that_does_not_inspect_is_found(session: HostSession) -> None:
    case = Case("veth", function="nat+acl10+inspect50", api="raw-mmsg")
    with in_place(RouterForGateway), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason, found.launches) == ("INVALID", "function", 0)
    words = "frame 31 of 41 from a .* has to be denied: rule 1 of the inspection is for it, but arrived as 198.18.1.16"
    assert re.search(words, found.evidence or ""), found.evidence


class LaxRouter(RouterForLinux):
    """The same, and its proof does not see it."""

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        return LinuxFunction.proof("route", ends)


def test_acl_drop_frames_that_pass_are_found_by_the_accounts_of_a_launch(session: HostSession) -> None:
    traffic = Traffic().with_labels("10", None)
    case = Case("veth", Frames(traffic=traffic, rate=Rate(20_000)), function="acl10+deny30", api="raw-mmsg")
    with in_place(LaxRouter), through(session, case) as rig:
        found = measure(Side(rig, case), SHORT)
    assert (found.verdict, found.reason) == ("INVALID", "function"), found.evidence
    words = r"function acl10\+deny30 of pair 1: [\d,]+ frames of flows that it has to deny arrived at recv of pair 1"
    assert re.search(words, found.evidence or ""), found.evidence


class Cheap(ForwarderFunction):
    """A wire in the place of a function that costs cycles."""

    name = "sham"

    @classmethod
    def mode(cls, function: str) -> str | None:
        return None

    @classmethod
    def least_cycles(cls, function: str) -> int:
        return 200_000


def test_a_wire_that_should_cost_cycles_is_found(session: HostSession) -> None:
    case = Case("veth", Frames(rate=Rate(2000)), function="cost200000", api="raw-mmsg")
    with in_place(Cheap), through(session, case) as rig:
        found = measure(Side(rig, case), UNDISTURBED)
    assert (found.verdict, found.reason) == ("INVALID", "function"), found.evidence
    assert re.search(r"a frame cost it [\d,]+ cycles, and has to cost 200,000", found.evidence or ""), found.evidence
