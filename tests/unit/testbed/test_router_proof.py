# SPDX-License-Identifier: BSD-3-Clause
"""The proof of a router: what a true one, a bridge and half a router make of its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.function import proof
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.routes import destination, own_address
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.router_proof import prove_router
from tests.unit.testbed.test_exchange import ADDRESSES, FakeRig, quick, to_the_peer, veths

__all__ = ["quick"]  # fixture

scapy = pytest.importorskip("scapy.all")

CASES = [
    Case("vpp", Frames(Traffic(packet_size=84, header=header, routes=10, both=both)), mode=mode, pairs=2)
    for mode, header in (("ip4", None), ("ip6", "udp6"))
    for both in (False, True)
]


class Router:
    """A switch that routes with Scapy, and then damages what it sends."""

    def __init__(self, case: Case, damage: Callable[[bytes], bytes | None] = lambda frame: frame) -> None:
        self._case, self._damage = case, damage
        version = case.ip_version or 4
        self._kind, self._hops = (scapy.IPv6, "hlim") if version == 6 else (scapy.IP, "ttl")
        self._table = {own_address(version, address.ip): index for index, address in enumerate(ADDRESSES)}
        for sender in case.path.endpoints:
            share = case.routes_of(sender)
            for number in () if share is None else range(share.first, share.first + share.count):
                self._table[destination(version, number)] = case.path.peer(sender)

    def __call__(self, index: int, frames: list[bytes]) -> Mapping[int, list[bytes]]:
        arriving: dict[int, list[bytes]] = {}
        for frame in frames:
            for to, sent in self._forward(index, scapy.Ether(frame)):
                arriving.setdefault(to, []).append(sent)
        return arriving

    def _mac(self, port: int) -> str:
        return ADDRESSES[self._case.path.peer(port)].mac

    def _forward(self, index: int, packet: Any) -> Iterator[tuple[int, bytes]]:
        ip = packet[self._kind]
        hops, to = getattr(ip, self._hops) - 1, self._table.get(ip.dst)
        if packet.dst != self._mac(index) or to is None or not hops:
            return
        packet.src, packet.dst = self._mac(to), ADDRESSES[to].mac
        setattr(ip, self._hops, hops)
        if self._kind is scapy.IP:
            del ip.chksum
        if (sent := self._damage(bytes(packet))) is not None:
            yield to, sent


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param  # type: ignore[no-any-return]


def proven(tmp_path: Path, case: Case, forward: Callable[..., Any]) -> str | None:
    return prove_router(FakeRig(tmp_path, veths(), forward), case, lambda: None)


def test_a_router_is_proven(tmp_path: Path, case: Case) -> None:
    assert proven(tmp_path, case, Router(case)) is None


def test_a_bridge_is_no_router(tmp_path: Path, case: Case) -> None:
    fault = proven(tmp_path, case, to_the_peer)
    assert fault is not None
    assert fault.startswith("vpp as a router: pair 1: frame 1 of ")
    assert "has to leave with TTL 63" in fault
    assert "but arrived as" in fault


def keep_source(data: bytes) -> bytes:
    """As a switch that lowers the TTL of a bridged frame: it leaves the MAC address of whoever sent it."""
    return data[:6] + bytes.fromhex("020000fd0001") + data[12:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: None,
        lambda data: proof.route_frame(data, data[6:12].hex(":"), data[:6].hex(":")),
        keep_source,
        lambda data: data[:-1] + b"?",
    ],
    ids=["nothing", "two hops", "old source", "payload"],
)
def test_half_a_router_is_found_out(tmp_path: Path, case: Case, damage: Callable[[bytes], bytes | None]) -> None:
    assert proven(tmp_path, case, Router(case, damage)) is not None


def test_a_wrong_checksum_of_ip_is_found_out(tmp_path: Path) -> None:
    case = CASES[0]
    fault = proven(tmp_path, case, Router(case, lambda data: data[:24] + b"\0\0" + data[26:]))
    assert fault is not None
    assert "wrong checksum" in fault


def test_routes_that_are_missing_are_found_out(tmp_path: Path, case: Case) -> None:
    """The last route of a share is looked up: a table that was not installed whole does not pass."""
    shorter = replace(case.traffic, routes=(case.traffic.routes or 0) - 1)
    fault = proven(tmp_path, case, Router(case.sending(traffic=shorter)))
    assert fault is not None
    assert "did not arrive" in fault
