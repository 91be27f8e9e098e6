# SPDX-License-Identifier: BSD-3-Clause
"""testpmd's functions: their names, its options for them, and what is refused."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.function import proof, registry
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec
from pytest_icbench.driver.function.testpmd_function import TestpmdFunction, _options
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.endpoint import Address, VhostUser

ENDS = Ends.make(3, Address.of(3, "a"), Address.of(3, "b"))
ANY: Any = object()
SPEC = FunctionSpec(
    *("tupleswap", 3, ENDS, VhostUser(ENDS.inner, "/run/a"), VhostUser(ENDS.outer, "/run/b"), ANY, None, ANY),
    *((0, 1, 2, 3), 1, 0, 1500, Path()),
)


def test_each_mode_is_a_function_over_vhost_user() -> None:
    for function in ("io", "macswap", "tupleswap", "noisy1", "noisy9999"):
        assert registry.component_for(function, "ovs", "vhost-user") is TestpmdFunction
    assert not any(map(TestpmdFunction.has, ("swap", "noisy", "noisy0", "noisy10000", "io+macswap")))


@pytest.mark.parametrize(
    ("function", "mode", "more"),
    [
        ("io", "io", []),
        ("tupleswap", "5tswap", []),
        ("noisy30", "noisy", ["--noisy-lkup-memory=64", "--noisy-lkup-num-reads-writes=30"]),
    ],
)
def test_its_options_are_those_of_the_mode(function: str, mode: str, more: list[str]) -> None:
    options = _options(function)
    assert options[0] == f"--forward-mode={mode}"
    assert options[4:] == more


@pytest.mark.parametrize(
    ("function", "change"),
    [("io", bytes), ("noisy9", bytes), ("macswap", proof.swap_macs), ("tupleswap", proof.swap_ends)],
)
def test_frames_pass_as_the_mode_says(function: str, change: Any) -> None:
    forth, back = TestpmdFunction.proof(function, ENDS)
    assert (len(forth), len(back)) == (20, 20)
    assert all(probe.expected == change(probe.frame) for probe in (*forth, *back))
    assert TestpmdFunction.changes_addresses(function, 1) is (change is not bytes)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        (
            {"inner": VhostUser(ENDS.inner, "/run/a", "back-end")},
            "needs virtio-user ports",
        ),
        ({"mtu": 9000}, "takes frames up to 1518 bytes"),
        ({"flows": "10:ports"}, "tupleswap sends flows that differ by port"),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_starts(axes: dict[str, Any], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        TestpmdFunction().start(ANY, replace(SPEC, **axes))


def test_a_telemetry_socket_that_does_not_listen_yet_is_waited_for(tmp_path: Path) -> None:
    function = TestpmdFunction()
    function._runtime = tmp_path
    assert function._ready() is False
    directory = tmp_path / "dpdk" / "rte"
    directory.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as early:
        early.bind(str(directory / "dpdk_telemetry.v2"))
        assert function._ready() is False
