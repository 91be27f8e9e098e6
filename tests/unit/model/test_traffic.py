# SPDX-License-Identifier: BSD-3-Clause
"""How long frames are, what follows from it, and that nobody but ``model.traffic`` reckons it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model import traffic_mix
from pytest_icbench.model.case import CASE_ID, Case, is_case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.traffic import (
    LABEL,
    MAX_FRAME_BYTES,
    MAX_QUEUES,
    MIN_FRAME_BYTES,
    SHORTEST,
    Traffic,
    carries_jumbo,
    l1_gbps,
)

PACKAGE = Path(__file__).parents[3] / "pytest_icbench"
#: Lengths that say by themselves what they are about: the longest frame, and the longest for Ethernet's MTU.
TELLING = {9216, 1518}

lengths = st.integers(MIN_FRAME_BYTES, MAX_FRAME_BYTES)
genomes = st.text("".join(traffic_mix.GENOME), min_size=1, max_size=traffic_mix.MAX_GENOME)
weighted = st.dictionaries(
    lengths, st.integers(1, traffic_mix.MAX_CYCLE // traffic_mix.MAX_SIZES), min_size=1, max_size=traffic_mix.MAX_SIZES
)
mixes = st.one_of(
    st.sampled_from(traffic_mix.NAMES),
    genomes,
    weighted.map(lambda sizes: ",".join(f"{k}:{v}" for k, v in sizes.items())),
)
labels = st.one_of(st.none(), st.sampled_from(["2", "64k", "1M:zipf", "1500:ports", "3k:macs:zipf"]))
headers = st.one_of(st.none(), st.sampled_from(["tcp4", "udp6", "tcp6", "udp4+vlan7", "tcp6+vlan4094"]))
traffics = st.builds(
    lambda traffic, flows, header, both, queues, routes: replace(
        traffic, flows=flows, header=header, both=both, queues=queues, routes=routes
    ),
    st.one_of(st.builds(Traffic, lengths), mixes.map(Traffic.of_mix)),
    labels,
    headers,
    st.booleans(),
    st.integers(1, MAX_QUEUES),
    st.one_of(st.none(), st.sampled_from([1, 1000, 1234, 100_000, 1_000_000])),
)


def test_figures_of_the_shortest_frame() -> None:
    """RFC 2544 and every data sheet: 14.88 Mpps on 10 Gbit/s."""
    assert Traffic(64) == SHORTEST
    assert SHORTEST.line_pps(10_000) == pytest.approx(14_880_952.38)
    assert l1_gbps(SHORTEST.mean_bytes) * 14_880_952.38 == pytest.approx(10.0)
    assert SHORTEST.gbps_per_pps * 1e6 == pytest.approx(0.512)
    assert SHORTEST.options == ["-p", "64"]


@pytest.mark.parametrize(
    ("packet_size", "jumbo", "longest", "mtu"),
    [(64, False, 1518, 1500), (1518, False, 1518, 1500), (1519, True, 9216, 9198), (9216, True, 9216, 9198)],
)
def test_ports_are_made_for_the_longest_frame(packet_size: int, jumbo: bool, longest: int, mtu: int) -> None:
    traffic = Traffic(packet_size)
    assert (traffic.jumbo, traffic.port_frame_bytes, traffic.mtu) == (jumbo, longest, mtu)
    assert carries_jumbo(traffic.mtu) == jumbo


@given(traffics)
def test_label_and_axes_say_all(traffic: Traffic) -> None:
    assert re.fullmatch(LABEL, traffic.label)
    assert Traffic.from_label(traffic.label) == traffic
    assert Traffic.from_axes(traffic.to_axes()) == traffic
    assert traffic.longest_bytes <= traffic.port_frame_bytes
    assert traffic.gbps_per_pps < l1_gbps(traffic.mean_bytes)


@given(traffics)
def test_queues_are_said_where_there_are_several(traffic: Traffic) -> None:
    one = replace(traffic, queues=1)
    assert (traffic.label == one.label) == (traffic.queues == 1) == ("queues" not in traffic.to_axes())
    assert traffic.options == one.options + (["--queues", f"{traffic.queues}"] if traffic.queues > 1 else [])


def test_fewer_flows_than_queues_leave_some_empty() -> None:
    assert Traffic(flows="64k", queues=16).idle_queues == 0
    assert Traffic(flows="3:ports", queues=4).few_flows == (
        "3 flows leave 1 or more of 4 queues empty: take more with --icbench-flows"
    )
    assert Traffic(queues=2).few_flows == "1 flow leaves 1 or more of 2 queues empty: take more with --icbench-flows"


@given(traffics)
def test_an_id_reports_the_traffic(traffic: Traffic) -> None:
    node_id = f"test_x.py::test_a[{Case('ovs', Frames(traffic)).id}]"
    assert is_case(node_id)
    found = CASE_ID.search(node_id)
    assert found is not None
    assert Traffic.from_label(found["traffic"]) == traffic


def reckoning(source: str) -> Iterator[str]:
    """Expressions in a module's source that know a frame's length: a telling constant, or a case's packet size."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=int(value)) if value in TELLING:
                yield ast.unparse(node)
            case ast.Attribute(attr="packet_size", value=value) if ast.unparse(value).endswith(("case", "traffic")):
                yield ast.unparse(node)


@pytest.mark.parametrize("expression", ["case.packet_size", "self.case.packet_size", "x > 1518", "f(9216)"])
def test_reckoning_is_found(expression: str) -> None:
    assert list(reckoning(expression))


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")


def test_nobody_else_knows_how_long_frames_are() -> None:
    """The conformance suite sends frames of every length on purpose, and a mix is its lengths."""
    found = {name: list(reckoning(source)) for name, source in modules() if not name.startswith("conformance/")}
    assert found.pop("model/traffic.py")
    assert found.pop("model/traffic_mix.py")
    assert {name: expressions for name, expressions in found.items() if expressions} == {}
