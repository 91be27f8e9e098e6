# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's paths beside bridge and veth: programs, offloads, and what a kernel that lacks one is reported."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.common import kernel
from pytest_icbench.driver.switch.kernel.ipvlan import Ipvlan
from pytest_icbench.driver.switch.kernel.macvlan import Macvlan
from pytest_icbench.driver.switch.kernel.macvtap import Macvtap
from pytest_icbench.driver.switch.kernel.tc_redirect import TcRedirect, redirect_peer
from pytest_icbench.driver.switch.kernel.veth import Netkit
from pytest_icbench.driver.switch.kernel.vxlan import Vxlan
from pytest_icbench.driver.switch.kernel.xdp import Xdp, redirect_by_port
from pytest_icbench.driver.switch.protocol import SwitchFacts
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net import ethtool
from tests.unit.recording_host import RecordingSession, attachments_of, spec_of

PATHS = [name for name, cls in builtin_switches().items() if issubclass(cls, kernel.KernelPath)]


def test_the_paths_are_selected_by_name() -> None:
    assert PATHS == ["macvlan", "macvtap", "ipvlan", "netkit", "xdp", "tc-redirect", "route", "vxlan", "ovs-kernel"]
    assert all(builtin_switches()[name].by_name_only for name in PATHS)


def test_programs_are_whole_instructions() -> None:
    """Opcodes as linux/bpf.h has them; a map's descriptor takes two instructions."""
    opcodes = [program[0::8] for program in (redirect_by_port(7), redirect_peer(9))]
    assert [list(codes) for codes in opcodes] == [[0x61, 0x18, 0x00, 0xB7, 0x85, 0x95], [0xB7, 0xB7, 0x85, 0x95]]
    assert struct.unpack_from("<i", redirect_by_port(7), 12) == (7,)
    assert struct.unpack_from("<i", redirect_peer(9), 4) == (9,)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"lro": "true"}, "offloads: there is no 'lro': the offloads are checksum, gro, gso, tso, udp-gro, "),
        ({"gro": "1"}, "offloads: gro = '1' is neither true nor false"),
        ({"rps": "0-1"}, "offloads: rps = '0-1' is not a mask of CPUs: write it in hexadecimal"),
    ],
)
def test_an_offload_that_there_is_not_is_refused_before_anything_is_made(
    settings: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    session: Any = RecordingSession(tmp_path)
    with pytest.raises(ProvisionError, match=f"^{sentence}"):
        Xdp().start(session, spec_of(tmp_path, port="veth", config={"offloads": settings}), attachments_of(tmp_path))
    assert session.spawner.ran == []


def test_a_path_takes_offloads_and_nothing_else() -> None:
    taps = {"macvtap"}  # whose links are not in the nodes
    assert all(builtin_switches()[name].config_keys == {"offloads": "table"} for name in {*PATHS} - taps)
    assert ethtool.check_settings({"gro": "true", "threaded-napi": "false", "rps": "3"}) == {
        "gro": "true",
        "threaded-napi": "false",
        "rps": "3",
    }


def xdp_with(**config: Any) -> Xdp:
    switch = Xdp()
    switch._facts = SwitchFacts(config=config)
    return switch


def test_xdp_names_the_checksums_that_it_loses() -> None:
    left = {"endpoint": {"checksum": True}}
    fault = xdp_with(mode="default", offloads=left).fault()
    assert fault is not None
    assert fault.endswith("native XDP passes frames on without them: leave checksum out")
    assert xdp_with(mode="skb", offloads=left).fault() is None
    assert xdp_with(mode="default", offloads={"endpoint": {"checksum": False}}).fault() is None
    assert Xdp().fault() is None


@pytest.mark.parametrize(
    ("driver", "kind", "option"),
    [
        (Macvlan, "macvlan", "CONFIG_MACVLAN"),
        (Macvtap, "macvtap", "CONFIG_MACVTAP"),
        (Ipvlan, "ipvlan", "CONFIG_IPVLAN"),
        (Netkit, "netkit", "CONFIG_NETKIT"),
        (Vxlan, "vxlan", "CONFIG_VXLAN"),
    ],
)
def test_a_kernel_without_the_kind_is_reported_its_option(
    driver: Any, kind: str, option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pyroute2
    from pyroute2.netlink.exceptions import NetlinkError

    class Without:
        def __enter__(self) -> Without:
            return self

        def __exit__(self, *error: object) -> None: ...

        def link_lookup(self, **named: object) -> list[int]:
            return [2]

        def link(self, command: str, **named: object) -> None:
            if named["kind"] == kind:
                raise NetlinkError(95)

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(kernel, "save_netns", nullcontext)
    monkeypatch.setattr(kernel, "unshare", lambda flags: None)
    monkeypatch.setattr(pyroute2, "IPRoute", Without)
    session: Any = RecordingSession(tmp_path)
    with pytest.raises(
        Unsupported, match=rf"cannot make links of kind {kind} .*modprobe {kind}\).*{option}.*test-paths"
    ):
        driver().probe(session, None)


def test_the_counters_of_a_path_without_ports_are_the_endpoints_own() -> None:
    assert TcRedirect().counts_at_ports
    around = TcRedirect()
    around._facts = SwitchFacts(config={"mode": "peer"})
    assert not around.counts_at_ports
    assert not Macvlan().counts_at_ports


def test_a_tunnel_goes_over_every_path_of_frames_and_packets() -> None:
    assert Vxlan.modes == ("linux-bridge", "macvlan", "tc-redirect", "xdp", "route")
    assert Vxlan.wire_modes == ()


def test_what_was_not_started_has_no_namespace(tmp_path: Path) -> None:
    for name in PATHS:
        switch: Any = builtin_switches()[name]()
        with pytest.raises(ProvisionError, match=f"{name} was not started"):
            _ = switch.netns
        switch.stop()
