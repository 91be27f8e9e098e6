# SPDX-License-Identifier: BSD-3-Clause
"""A router with an inspection behind its rules: its names, its proof, and how frames come to Suricata."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function import proof, registry
from pytest_icbench.driver.function.gateway import GatewayFunction, _queue
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.protocol import Ends
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.model.endpoint import Address

ENDS = Ends.make(1, Address.of(1, "a"), Address.of(1, "b"))


@pytest.mark.parametrize(
    ("function", "component"),
    [
        ("nat+acl10+police20k+inspect100", "gateway"),
        ("inspect+route", "gateway"),
        ("inspect", "suricata"),
        ("nat+acl10", "linux"),
    ],
)
def test_parts_of_both_select_the_gateway(function: str, component: str) -> None:
    assert registry.component_for(function, "veth", "veth").name == component


@pytest.mark.parametrize("function", ["acl10+inspect+deny30", "inspect+inspect2", "inspect+deny30", "wire+inspect"])
def test_what_it_does_not_have_is_not_its(function: str) -> None:
    assert not GatewayFunction.has(function)


def test_its_proof_is_the_routers_and_frames_of_both_sides_that_the_inspection_denies() -> None:
    router = LinuxFunction.proof("nat+acl10", ENDS)
    stages = GatewayFunction.proof("nat+acl10+inspect300", ENDS)
    for whole, of_router, forth in zip(stages, router, (True, False), strict=True):
        assert list(whole[: len(of_router)]) == list(of_router)
        acl_drops = whole[len(of_router) :]
        assert len(acl_drops) == 10 + 1
        assert all((probe.expected, probe.forth) == (None, forth) for probe in acl_drops)
        assert all(b"icbench rule 00" in probe.frame for probe in acl_drops)
        numbers = [proof.frame_number(probe.frame) for probe in whole]
        assert len(set(numbers)) == len(numbers), "so that a message names the right one"
    assert GatewayFunction.visible_addresses("nat+inspect", ENDS) == LinuxFunction.visible_addresses("nat", ENDS)
    assert GatewayFunction.only_answers("nat+inspect")
    assert GatewayFunction.rate_limit("police20k+inspect", 64) == LinuxFunction.rate_limit("police20k", 64)


def tools(**known: bool) -> Any:
    """A session whose programs are there, and do what they are told or not."""

    def run(argv: list[str], **_: object) -> None:
        if argv[0] not in known:
            raise NotStarted(argv[0])
        if not known[argv[0]]:
            raise ProvisionError(argv[0])

    return SimpleNamespace(spawner=SimpleNamespace(run=run))


def test_frames_come_by_nft_or_by_iptables() -> None:
    ask: Callable[[Any], str] = lambda session: _queue(session, "/proc/self/ns/net")  # noqa: E731
    assert "queue num 0" in ask(tools(nft=True, iptables=True))
    assert ask(tools(nft=False, iptables=True)).startswith("iptables -t mangle -A POSTROUTING")
    assert ask(tools(iptables=True)).endswith("-j NFQUEUE --queue-num 0")
    with pytest.raises(Unsupported, match="no queue of nftables: load its module nft_queue, or install iptables"):
        ask(tools(nft=False))
