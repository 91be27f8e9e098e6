# SPDX-License-Identifier: BSD-3-Clause
"""The frames of a proof are those that Scapy makes, also after they were changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.function import proof
from pytest_icbench.model.endpoint import Address

scapy = pytest.importorskip("scapy.all")

A, B = Address.of(1, "a"), Address.of(1, "b")


def made(source: Address, target: Address, port: int, ttl: int = 64, ident: int | None = None) -> bytes:
    ip = scapy.IP(src=source.ip, dst=target.ip, ttl=ttl, id=port if ident is None else ident, flags="DF")
    return bytes(
        scapy.Ether(src=source.mac, dst=target.mac) / ip / scapy.UDP(sport=port, dport=port) / b"icbench function!!"
    )


@given(st.integers(1, 65535), st.integers(2, 255))
def test_a_frame_is_what_scapy_makes_of_it(port: int, ttl: int) -> None:
    frame = proof.frame(A, B, port, ttl=ttl)
    assert frame == made(A, B, port, ttl)
    assert len(frame) == 60
    assert (proof.is_proof(frame), proof.frame_number(frame)) == (True, port)


@given(st.integers(1, 65535), st.integers(2, 255))
def test_a_frame_of_ipv6_is_what_scapy_makes_of_it_and_so_is_a_routed_one(port: int, ttl: int) -> None:
    source, target = Address("fd69::1", A.mac), Address("fd0a::1", B.mac)

    def by_scapy(mac: str, hops: int) -> bytes:
        ip = scapy.IPv6(src=source.ip, dst=target.ip, hlim=hops)
        return bytes(scapy.Ether(src=mac, dst=B.mac) / ip / scapy.UDP(sport=port, dport=port) / b"icbench function!!")

    frame = proof.frame(source, target, port, ttl=ttl)
    assert frame == by_scapy(A.mac, ttl)
    assert proof.route_frame(frame, "02:00:00:01:01:02", B.mac) == by_scapy("02:00:00:01:01:02", ttl - 1)
    assert (proof.is_proof(frame), proof.frame_number(frame)) == (True, port)
    assert proof.describe(frame) == f"fd69::1:{port} > fd0a::1:{port}, {A.mac} > {B.mac}, TTL {ttl}"
    assert "wrong checksum" in proof.describe(frame[:-1] + b"?")


@given(st.integers(1, 65535))
def test_a_routed_frame_has_new_addresses_a_hop_less_and_right_checksums(port: int) -> None:
    pool = Address("198.18.1.16", "02:00:00:01:01:02")
    routed = proof.route_frame(proof.frame(A, B, port), pool.mac, B.mac, source_ip=pool.ip)
    assert routed == made(pool, B, port, 63)


@given(st.integers(1, 65535), st.integers(1, 65535))
def test_a_turned_frame_has_all_its_ends_swapped_and_right_checksums(source: int, target: int) -> None:
    frame = proof.set_number(proof.frame(A, B, source), 7)
    layers = scapy.Ether(frame)
    layers[scapy.UDP].dport = target
    del layers[scapy.UDP].chksum
    turned = scapy.Ether(proof.swap_ends(bytes(layers)))
    assert (turned.src, turned.dst, turned[scapy.IP].src, turned[scapy.IP].dst) == (B.mac, A.mac, B.ip, A.ip)
    assert (turned[scapy.UDP].sport, turned[scapy.UDP].dport) == (target, source)
    assert "checksum" not in proof.describe(bytes(turned))


def test_swapped_frames_come_back_and_words_name_a_wrong_checksum() -> None:
    frame = proof.frame(A, B, 1024)
    assert proof.swap_macs(proof.swap_macs(frame)) == frame
    assert proof.describe(frame) == ("198.18.1.1:1024 > 198.18.1.2:1024, 02:00:00:00:01:01 > 02:00:00:00:01:02, TTL 64")
    assert proof.describe(frame[:22] + b"\x20" + frame[23:]).endswith("TTL 32, wrong checksum")
    assert proof.describe(b"x" * 14) == "14 bytes " + "78" * 14
    assert not proof.is_proof(b"\0" * 60)
