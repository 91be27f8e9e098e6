# SPDX-License-Identifier: BSD-3-Clause
"""Subscribers and their active clients: names, flows, rates, and who is refused."""

from __future__ import annotations

import pytest

from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.protocol import Ends
from pytest_icbench.driver.function.registry import component_for
from pytest_icbench.driver.function.subscriber_firewalls import SubscribersFunction
from pytest_icbench.driver.switch.kernel.veth import VethLink
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.function_facts import FunctionCounters, FunctionWork, jain_index
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.subscribers import Subscribers
from pytest_icbench.model.traffic import Traffic

ENDS = Ends.make(1, Address.of(1, "a"), Address.of(1, "b"))


def expanded(**marker: object) -> list[Case]:
    request = parse_marker((), {"switch": "veth", "functions": "subscribers300+acl10", **marker}, "t")
    return expand(request, Options(), {"veth": VethLink}, "t")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("subscribers1", Subscribers(1)),
        ("subscribers1000+firewall", Subscribers(1000)),
        ("subscribers20+firewall+acl10+deny30", Subscribers(20, "firewall+acl10+deny30")),
    ],
)
def test_a_name_has_its_subscribers(name: str, found: Subscribers) -> None:
    assert Subscribers.of(name) == Subscribers.of(str(found)) == found
    assert component_for(name, "veth", "veth") is SubscribersFunction


@pytest.mark.parametrize(
    "name",
    [
        "subscribers",
        "subscribers0",
        "subscribers1001",
        "firewall",
        *(f"subscribers9+{e}" for e in ("nat", "route", "x")),
    ],
)
def test_other_names_are_none(name: str) -> None:
    assert not SubscribersFunction.has(name)


def test_each_active_client_has_the_rate() -> None:
    cases = expanded(active="1 250", rate="1k", api="raw")
    assert [(case.traffic.flows, case.rate) for case in cases] == [(None, Rate(1_000)), ("250", Rate(250_000))]
    assert [case.rate.pps for case in expanded(active=2, rate="10Mbit", packet_size=1518, api="raw")] == [1624]
    (searched,) = expanded(active=30, rate="ndr", api="raw")
    assert searched.rate.is_search


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ({"active": 301}, "'subscribers300[+]acl10' has 300 subscribers, and 301 are to be active"),
        ({"active": 3, "functions": "nat"}, "active clients need a function with subscribers .*, not 'nat'"),
        ({"active": 3, "functions": "none"}, "active clients need a function with subscribers .*, not 'none'"),
        ({"active": 3, "flows": "7"}, "active clients are flows: leave out flows"),
        ({"flows": "301"}, "flows 301 do not match 300 firewalls"),
        ({"flows": "30:ports"}, "flows 30:ports do not match 300 firewalls"),
        ({"flows": "new"}, "flows new do not match 300 firewalls"),
        ({"active": 1001}, "active clients"),
    ],
)
def test_clients_without_a_firewall_are_refused(marker: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        expanded(**marker)


def test_round_trips_are_held_against_one_subscriber_alone() -> None:
    case = Case(
        "veth",
        Frames(traffic=Traffic(64, flows="9"), rate=Rate(900)),
        dimension="latency",
        function="subscribers9+acl10",
    )
    assert case.beside_alone, "so the ratio is not that to the plain path"
    assert not Case("veth", function="subscribers9").beside_alone
    reference = reference_case(case, None, family="kernel")
    assert reference is not None
    assert (reference.function, reference.rate, reference.traffic) == ("subscribers1+acl10", Rate(100), Traffic(64))


def test_every_subscriber_has_a_frame_of_each_kind_and_an_address_of_its_own() -> None:
    forth, back = SubscribersFunction.proof("subscribers3+firewall+acl10", ENDS)
    assert (len(forth), sum(probe.expected is None for probe in forth)) == (6, 3)
    assert (len(back), sum(probe.expected is None for probe in back)) == (6, 3)
    assert {probe.frame[26:30] for probe in forth} == {probe.frame[30:34] for probe in back}
    assert len({probe.frame[26:30] for probe in forth}) == 3
    assert [proof.frame_number(probe.frame) for probe in forth] == list(range(6)), (
        "so that a message names the right one"
    )


def test_memory_is_that_of_all_of_them() -> None:
    assert SubscribersFunction.required_memory_mib("subscribers1000") == SubscribersFunction.memory_mib + 1000


def test_the_fairness_index_is_jains() -> None:
    assert jain_index([5, 5, 5]) == 1.0
    assert jain_index([9, 0, 0]) == pytest.approx(1 / 3)
    assert jain_index([0, 0]) is None
    before, after = FunctionCounters(1, given_each=(5, 0, 0)), FunctionCounters(1, given_each=(9, 2, 0))
    work = FunctionWork.between(before, after, active=2)
    assert work.given_each == (4, 2)
    assert work.fairness_index == pytest.approx(0.9)
