# SPDX-License-Identifier: BSD-3-Clause
"""Functions with a firewall for each subscriber by their names, and the traffic of their active clients. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from pytest_icbench.model import flows
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate

#: The most subscribers of one function: those of the literature.
MOST_SUBSCRIBERS = 1000
_NAME = re.compile(r"subscribers([1-9]\d{0,3})((?:\+[a-z]+\d*)*)", re.ASCII)
_PERSONAL = "firewall"


@dataclass(frozen=True, slots=True)
class Subscribers:
    """The subscribers of a function such as ``subscribers1000+firewall+acl10``.

    Attributes:
        count: how many there are.
        each: the function of each.
    """

    count: int
    each: str = _PERSONAL

    @classmethod
    def of(cls, function: str | None) -> Self | None:
        """Returns the subscribers in a function's name; None without any. The component checks their functions."""
        match = _NAME.fullmatch(function or "")
        if match is None or int(match[1]) > MOST_SUBSCRIBERS:
            return None
        return cls(int(match[1]), match[2].removeprefix("+") or _PERSONAL)

    def __str__(self) -> str:
        return f"subscribers{self.count}" + ("" if self.each == _PERSONAL else f"+{self.each}")


def with_active(case: Case, clients: int) -> Case:
    """Returns a case with this number of active clients. Each has the case's rate, if that is fixed.

    Raises ValueError: the case has no subscribers, or too few; the message is the beginning of a sentence.
    """
    for function in case.functions or ("none",):
        subscribers = Subscribers.of(function)
        if subscribers is None:
            raise ValueError(f"active clients need a function with subscribers (subscribers1000), not '{function}'")
        if clients > subscribers.count:
            raise ValueError(f"'{function}' has {subscribers.count:,} subscribers, and {clients:,} are to be active")
    if case.traffic.flows is not None:
        raise ValueError(f"active clients are flows: leave out flows ({case.traffic.flows})")
    rate = case.rate if case.rate.pps is None else Rate(case.rate.pps * clients)
    return case.sending(traffic=replace(case.traffic, flows=flows.parse(str(clients))), rate=rate)


def misfit(case: Case) -> str | None:
    """Returns why the flows of a case do not have a firewall each; None if they do, or need none."""
    number, label = flows.number(case.traffic.flows), case.traffic.flows
    for subscribers in filter(None, map(Subscribers.of, case.functions)):
        if label is not None and (not label.isalnum() or label == flows.NEW or number > subscribers.count):
            return (
                f"flows {label} do not match {subscribers.count:,} firewalls: take that many flows or fewer,"
                " which differ by address"
            )
    return None


def alone(case: Case) -> Case | None:
    """Returns the same case with one subscriber, who alone is active; None for a case without subscribers."""
    subscribers = Subscribers.of(case.function)
    if subscribers is None:
        return None
    pps = case.rate.pps
    rate = case.rate if pps is None else Rate(max(1, round(pps / flows.number(case.traffic.flows))))
    one = str(replace(subscribers, count=1))
    return replace(case, function=one, candidate=None).sending(traffic=replace(case.traffic, flows=None), rate=rate)
