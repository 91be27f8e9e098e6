# SPDX-License-Identifier: BSD-3-Clause
"""Topology files, whatever they hold: written is read again, and a mistake's place is the mistake's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.config.topology import FOLLOWERS, HOSTS, LEADERS, Container, Topology, loads, to_toml
from pytest_icbench.errors import UsageError
from pytest_icbench.model.endpoint import Address


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Pairs on either host, with everything a file can say."""
    pairs = draw(st.integers(1, 6))
    name = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,14}[A-Za-z0-9])?", fullmatch=True)
    names = draw(st.lists(name, min_size=2 * pairs, max_size=2 * pairs, unique=True))
    lasts = draw(st.lists(st.integers(1, 254), min_size=2 * pairs, max_size=2 * pairs, unique=True))
    functions = draw(st.lists(st.integers(0, 255), min_size=2 * pairs, max_size=2 * pairs, unique=True))
    with_cpus = draw(st.booleans())
    which: tuple[int, ...] = ()
    containers = []
    for index in range(2 * pairs):
        family = FOLLOWERS if index % 2 else LEADERS
        if not index % 2:
            which = draw(st.sampled_from([(0,), (1,), (0, 1)]))
        containers.append(
            Container(
                name=names[index],
                host=draw(st.sampled_from(HOSTS)),
                applications=tuple(family[each] for each in which),
                peer=names[index ^ 1],
                address=Address(f"10.1.2.{lasts[index]}", f"02:00:00:00:00:{lasts[index]:02x}", 24),
                cpus=tuple(draw(st.lists(st.integers(0, 255), min_size=1, max_size=3, unique=True)))
                if with_cpus
                else (),
                socket=draw(st.none() | st.just(f"s{index}")),
                vf=draw(st.none() | st.just(f"enp4s2f{index}")),
                pci=draw(st.none() | st.just(f"0000:{functions[index]:02x}:02.{index % 8}")),
                device=draw(st.none() | st.just(f"/dev/vfio/{index}")),
            )
        )
    return Topology(tuple(containers))


@settings(max_examples=30, deadline=None)
@given(topologies(), st.booleans())
def test_what_is_written_is_read_again(topology: Topology, hints: bool) -> None:
    assert loads(to_toml(topology, hints=hints), "again") == topology


@settings(max_examples=30, deadline=None)
@given(topologies(), st.data())
def test_a_duplicate_is_found_in_its_container(topology: Topology, data: st.DataObject) -> None:
    """Wherever in the file: the place that is named is the second of the two, and the first is named, too."""
    first, second = sorted(data.draw(st.sets(st.integers(0, 2 * topology.pairs - 1), min_size=2, max_size=2)))
    containers = list(topology.containers)
    double = replace(containers[second].address, mac=containers[first].address.mac)
    containers[second] = replace(containers[second], address=double)
    with pytest.raises(UsageError) as caught:
        loads(to_toml(Topology(tuple(containers))), "double")
    assert str(caught.value) == (
        f"double: container[{second}].mac: {containers[second].name} has the MAC address {double.mac}"
        f" of {containers[first].name} (container[{first}]): take another one"
    )


@given(st.text(alphabet='[]"=\n# cpairs.0v', max_size=60))
def test_no_text_ends_in_anything_but_a_sentence(text: str) -> None:
    said = ""
    try:
        loads(text, "noise")
    except UsageError as error:
        said = str(error)
    assert "\n" not in said
