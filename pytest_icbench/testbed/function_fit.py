# SPDX-License-Identifier: BSD-3-Clause
"""Cases of which a network function could make nothing, or whose figures would prove nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.model import flows
from pytest_icbench.model.case import Case
from pytest_icbench.model.traffic import FCS_BYTES, STAMP_BYTES
from pytest_icbench.wording import counted

#: How the APIs begin whose sockets take only frames for the address of their interface.
_UDP = "udp"


def misfit(component: type[Function], function: str, case: Case, api: str) -> str | None:
    """Returns a sentence if a component cannot do a function for a case, or could not prove it; None if it can.

    Args:
        function: one of the case's.
        api: the case's, resolved.
    """
    return next(_misfits(component, function, case, api), None)


def _misfits(component: type[Function], function: str, case: Case, api: str) -> Iterator[str]:
    if case.chain > 1 and not component.chains:
        yield (
            f"{component.name} makes no chains of its function '{function}': take --icbench-chain 1, or a function"
            " in containers"
        )
    if api.startswith(_UDP) and component.readdresses(function, case.chain):
        yield (
            f"function {function} swaps MAC addresses, and UDP sockets take frames for their own address alone: take"
            " --icbench-api raw, raw-mmsg or xdp"
        )
    if case.traffic.header is not None and not component.any_frame:
        yield (
            f"function {function} is for IPv4 and UDP without a VLAN tag, not for {case.traffic.header}:"
            " leave --icbench-header out"
        )
    number = flows.number(case.traffic.flows)
    most = component.most_flows(function)
    if most is not None and most < number and case.traffic.flows != flows.NEW:
        yield (
            f"function {function} has {most:,} ports for flows at its pool's address, not for {number:,}:"
            f" take at most {most:,} with --icbench-flows"
        )
    if case.traffic.both:
        yield from _both_ways(component, function, case)
    if case.dimension == "throughput":
        yield from _idle_limits(component, function, case)
        yield from _nothing_denied(component, function, case, number)


def _both_ways(component: type[Function], function: str, case: Case) -> Iterator[str]:
    """Yields why both ends of a case cannot send through a function at once."""
    remedy = "leave --icbench-direction out"
    if case.chain > 1 or case.new_flows:
        what = "a chain" if case.chain > 1 else "new flows"
        yield f"function {function} accounts for the frames of {what} from side a to side b only: {remedy}"
    if case.one_cpu:
        yield f"functions that share a CPU are compared by the frames from side a to side b: {remedy}"
    if component.set_rate(function, case.traffic.mean_bytes) is not None:
        yield f"function {function} limits the frames of side a alone, and all would be judged by its rate: {remedy}"
    if case.traffic.flows is not None and component.only_answers(function):
        yield f"function {function} would deny all of side b's flows: leave --icbench-flows out"


def _idle_limits(component: type[Function], function: str, case: Case) -> Iterator[str]:
    limit, rate = component.set_rate(function, case.traffic.mean_bytes), case.rate.pps
    if limit is not None and case.rate.loss_ratio is not None:
        yield (
            f"function {function} lets {limit.pps:,.0f} frames/s pass, and a search ends below that, where it limits"
            f" none: take a rate above it, or max, not {case.rate.typed}"
        )
    if limit is not None and rate is not None and rate < limit.pps * (1 + limit.tolerance):
        yield (
            f"function {function} lets {limit.pps:,.0f} frames/s pass, and {rate:,} are sent, so it would never limit"
            " any: set a lower limit, or a greater rate"
        )


def _nothing_denied(component: type[Function], function: str, case: Case, number: int) -> Iterator[str]:
    denial = component.denial(function)
    if denial is None:
        return
    if denial.unasked:
        if not case.traffic.both:
            yield (
                f"function {function} denies frames of side b, which sends none, so their accounts would prove nothing:"
                " take --icbench-direction both"
            )
        return
    if case.traffic.flows is None:
        return
    if not denial.of_flows(number):
        yield (
            f"function {function} denies none of {counted(number, 'flow')}, so their accounts would prove nothing:"
            f" take {denial.least_flows} or more with --icbench-flows"
        )
    needed = case.traffic.headers_bytes + STAMP_BYTES + denial.text_bytes + FCS_BYTES
    if denial.text_bytes and min(case.traffic.sizes) < needed:
        yield (
            f"function {function} looks for a text that {min(case.traffic.sizes)} bytes do not hold behind headers and"
            f" stamp: take frames of {needed} or more"
        )
