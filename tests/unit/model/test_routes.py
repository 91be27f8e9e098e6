# SPDX-License-Identifier: BSD-3-Clause
"""The routes of a table: who routes, which prefixes there are, and who sends to which of them."""

from __future__ import annotations

import ipaddress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model import routes
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.traffic import Traffic

counts = st.integers(1, routes.MAX_ROUTES)
versions = st.sampled_from([4, 6])


@pytest.mark.parametrize(
    ("switch", "mode", "version"),
    [
        ("route", None, 4),
        ("route", "ip6", 6),
        ("vpp", None, None),
        ("vpp", "ip4", 4),
        ("vpp", "xconnect", None),
        ("ovs", "ip6", 6),
        ("linux-bridge", None, None),
        ("vxlan", "route", None),
    ],
)
def test_a_mode_says_who_routes(switch: str, mode: str | None, version: int | None) -> None:
    assert Case(switch, mode=mode).ip_version == version


@given(counts, st.integers(1, 508))
def test_senders_share_all_routes(number: int, senders: int) -> None:
    shares = [routes.share(number, senders, sender) for sender in range(senders)]
    assert shares[0].first == 0
    assert all(after.first == before.first + before.count for before, after in pairwise(shares))
    assert sum(share.count for share in shares) == number
    assert max(share.count for share in shares) - min(share.count for share in shares) <= 1


@given(versions, st.integers(0, routes.MAX_ROUTES - 1), st.integers(0, routes.MAX_ROUTES - 1))
def test_a_destination_is_below_its_route_alone(version: int, number: int, other: int) -> None:
    address = ipaddress.ip_address(routes.destination(version, number))
    assert address in ipaddress.ip_network(routes.network(version, number))
    assert (address in ipaddress.ip_network(routes.network(version, other))) == (number == other)
    assert ipaddress.ip_address(routes.own_address(version, "198.18.1.1")).version == version


@given(counts)
def test_a_label_is_read_back(number: int) -> None:
    assert routes.parse(routes.label(number).removeprefix("routes")) == number


@pytest.mark.parametrize("both", [False, True])
def test_an_endpoint_has_its_share_also_where_answers_are_asked_for(both: bool) -> None:
    """The preflight's requests have to find routes that lead to the peer, whichever case they precede."""
    load = Frames(Traffic(both=both, routes=1000))
    case = Case("vpp", load, mode="ip4", pairs=2)
    asked = Case("vpp", load, mode="ip4", pairs=2, dimension="latency")
    of_all = [case.routes_of(index) for index in case.path.endpoints]
    assert of_all == [asked.routes_of(index) for index in case.path.endpoints]
    assert sum(share.count for share in of_all if share is not None) == 1000
    assert [share is not None for share in of_all] == ([True] * 4 if both else [True, False, True, False])


def test_few_flows_are_said_with_what_to_take() -> None:
    case = Case("vpp", Frames(Traffic(routes=100_000)), mode="ip4", pairs=2)
    assert case.unused_routes is not None
    assert "1 of the 50,000 routes" in case.unused_routes
    assert case.unused_routes.endswith("--icbench-flows 50k")
    assert case.sending(traffic=Traffic(flows="50k", routes=100_000)).unused_routes is None
    assert case.sending(traffic=Traffic(flows="new", routes=100_000)).unused_routes is None


@pytest.mark.parametrize(
    ("switch", "flows", "routes", "answered"),
    [
        ("vpp", "100k", 1, None),
        ("vpp", "100k", 1000, "1k"),
        ("vpp", "1k", 100_000, "1k"),
        ("vpp", "100k", None, None),
        ("vpp", "100k:macs", 1, "100k:macs"),
        ("vpp", "100k:ports", 1000, None),
        ("veth", "100k", None, "100k"),
        ("veth", "new", None, None),
    ],
)
def test_a_preflight_asks_with_flows_whose_answers_come_back(
    switch: str, flows: str, routes: int | None, answered: str | None
) -> None:
    """A router has no route to the addresses of other flows, and a client one port."""
    case = Case(switch, Frames(Traffic(flows=flows, routes=routes)), mode="ip4" if switch == "vpp" else None)
    assert case.answered.flows == answered


def test_a_table_has_a_rig_of_its_own() -> None:
    few, many, plain = (Case("vpp", Frames(Traffic(routes=number)), mode="ip4") for number in (1, 1000, None))
    assert len({case.rig_key for case in (few, many, plain)}) == 3
    assert many.id == "vpp:ip4-64B-routes1k-b32-1vs1-Rmax"
    assert Case.from_dict(many.to_dict()) == many
