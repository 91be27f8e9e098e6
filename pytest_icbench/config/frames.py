# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of the axes that say what frames are sent. Pure; every error is one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from pytest_icbench.config import values
from pytest_icbench.errors import UsageError
from pytest_icbench.model import flows as flow_labels
from pytest_icbench.model import headers as header_labels
from pytest_icbench.model.case import Case
from pytest_icbench.model.flows import differ_by_port
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.model.traffic import BOTH, ONE, Traffic, sends_both_ways

_Value = TypeVar("_Value")


def combined(
    lengths: Iterable[Traffic],
    headers: Iterable[str | None],
    flows: Iterable[str | None],
    both: Iterable[bool] = (False,),
    queues: Iterable[int] = (1,),
) -> tuple[Traffic, ...]:
    """Returns frames of each length or mix, each with each of the headers, flows, directions and numbers of queues."""
    return tuple(
        replace(one, header=header, flows=flow, both=ends, queues=number)
        for one, header, flow, ends, number in product(lengths, headers, flows, both, queues)
    )


def packet_sizes(text: str, where: str) -> tuple[Traffic, ...]:
    """Parses the lengths of frames that all have one. Raises UsageError."""
    return tuple(map(Traffic, values.packet_sizes(text, where)))


def flows(text: str, where: str) -> tuple[str | None, ...]:
    """Parses numbers of flows, with what differs and their law: ``1 64k 1M:macs:zipf``. Raises UsageError."""
    words = text.replace(",", " ").split()
    missing = "no number of flows given; write 1, 64k, 64k:ports or 1M:zipf"
    return _each(words, where, flow_labels.parse, missing, "are no flows")


def flows_misfit(case: Case, api: str) -> str | None:
    """Returns why endpoints with this API cannot have the flows of a case, or None."""
    if case.traffic.flows is not None and api.startswith("udp"):
        return "a UDP socket has one flow; take --icbench-api raw or raw-mmsg, or leave --icbench-flows out"
    if case.round_trips and differ_by_port(case.traffic.flows):
        return "answers come back to one port, so flows cannot differ by ports, as new ones do; take addresses or macs"
    return None


def queues_misfit(case: Case, cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why the path or the endpoints cannot have the queues of a case, or None."""
    queues, remedy = case.traffic.queues, "leave --icbench-queues out"
    if queues == 1:
        return None
    if api != "dpdk":
        return f"api {api} has one queue: take --icbench-api dpdk, or {remedy}"
    port = case.resolved_port(cls)
    if port not in cls.queue_ports:
        kinds = f"take {' or '.join(cls.queue_ports)}" if cls.queue_ports else remedy
        return f"{case.switch}'s port {port} has one queue pair, not {queues}: {kinds}"
    if case.remote:
        return f"an uplink to a second host has one queue: {remedy}"
    if case.function is not None:
        return f"the ports of function {case.function} have one queue: {remedy}"
    if flow_labels.differ_by_mac(case.traffic.flows):
        return (
            f"a card's hash does not see MAC addresses, so flows {case.traffic.flows} would all be in one of {queues}"
            " queues: take addresses or ports"
        )
    return None


def directions(text: str, where: str) -> tuple[bool, ...]:
    """Parses directions, ``one`` and ``both``. Raises UsageError."""
    words = text.replace(",", " ").split()
    return _each(words, where, sends_both_ways, f"no direction given; write {ONE} or {BOTH}", "is no direction")


def direction_misfit(case: Case) -> str | None:
    """Returns why both ends of a case cannot send at once, or None."""
    if not case.traffic.both:
        return None
    remedy = "leave --icbench-direction out"
    if case.round_trips:
        return f"round trips go both ways already, and a server sends nothing of its own: {remedy}"
    if case.rate.trace is not None:
        return f"a trace says how fast sides a send, and nothing of sides b: {remedy}"
    if case.blocking:
        return "an end that sends and receives at once polls, so its sockets cannot block: leave --icbench-blocking out"
    return None


def headers(text: str, where: str) -> tuple[str | None, ...]:
    """Parses headers: ``udp4 tcp6 udp6+vlan100``. Raises UsageError."""
    words = text.replace(",", " ").split()
    missing = "no headers given; write udp4, tcp4, udp6, tcp6 or udp4+vlan100"
    return _each(words, where, header_labels.parse, missing, "are no headers")


def header_misfit(case: Case, cls: type[SwitchTraits], api: str) -> str | None:
    """Returns why the path or the endpoints cannot have the headers of a case, or None."""
    header = case.traffic.header
    if (reason := case.traffic.misfit) is not None or header is None:
        return reason
    if api.startswith("udp"):
        return (
            f"a UDP socket sends udp4, not {header}; take --icbench-api raw or raw-mmsg, or leave --icbench-header out"
        )
    if not header_labels.is_ipv4(header) and cls.hops is not None:
        return f"{case.switch} forwards IPv4 packets and nothing else, so not {header}; take udp4 or tcp4"
    if header_labels.has_tag(header) and api == "xdp":
        return f"an AF_XDP socket may not get to see the VLAN tag of {header}; take --icbench-api raw or raw-mmsg"
    if header_labels.has_tag(header) and (not cls.vlan or cls.filters):
        return f"{case.switch} does not pass frames with a VLAN tag; leave +vlan out of {header}"
    return None


def mixes(text: str, where: str) -> tuple[Traffic, ...]:
    """Parses mixes with spaces between. Raises UsageError."""
    missing = "no mix given; write simple, nfvbench, a genome (aaagb) or 64:7,594:4,1518:1"
    return _each(text.split(), where, Traffic.of_mix, missing, "is no mix")


def _each(
    words: Sequence[str], where: str, parse: Callable[[str], _Value], missing: str, wrong: str
) -> tuple[_Value, ...]:
    """Returns the values of words, each once. Raises UsageError: without any it says ``missing``."""
    if not words:
        raise UsageError(f"{where}: {missing}")
    parsed: dict[_Value, None] = {}
    for word in words:
        try:
            parsed[parse(word)] = None
        except ValueError as error:
            raise UsageError(f"{where}: '{word[:60]}' {wrong}: {error}") from None
    return tuple(parsed)
