# SPDX-License-Identifier: BSD-3-Clause
"""The reference link of a case: the same applications, traffic, pairs and CPUs, with no switch between. Pure.

The reference of a case with a network function is the same path without it. That of functions with shares or caps of a
CPU, and of round trips beside busy functions, is the first of them alone on that CPU. That of round trips of many
subscribers is one subscriber alone. That of a case beside a noisy neighbour is the same case, on the same rig, without
it.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.case import REFERENCE_LINKS, Case
from pytest_icbench.model.subscribers import alone

#: Switches that are reference links themselves.
REFERENCES = tuple(REFERENCE_LINKS.values())


def reference_case(case: Case, port: str | None, *, family: str) -> Case | None:
    """Returns the reference of ``case``; None if it has none, and then ``ratio_to_reference`` is absent.

    None for the reference links themselves, and for throughput at fixed rates, which needs neither a ratio nor a
    calibrated load.

    Args:
        port: the case's resolved port kind, which ``direct`` uses, too.
        family: family of the case's switch, ``kernel`` or ``dpdk``.
    """
    if case.noisy_neighbour is not None:
        return replace(case.undisturbed, candidate=None)
    if case.switch in REFERENCES and case.function is None:
        return None
    if case.cpu_allocations and case.one_way and not case.rate.varies:
        # In a group of its own, too, so that others on the host take no more from it than from the case's functions.
        return replace(case, function=case.functions[0], pairs=1, cpu_share="100", cpu_quota=None, candidate=None)
    if case.mixed and case.round_trips:
        return replace(case, function=case.functions[0], pairs=1, cpu_share=None, cpu_quota=None, candidate=None)
    if case.round_trips and (one := alone(case)) is not None:
        return one
    if case.one_way and (case.rate.pps is not None or case.rate.loads or case.rate.trace):
        return None
    if case.function is not None:
        return replace(case, function=None, chain=1, cpu_share=None, cpu_quota=None, candidate=None)
    api = case.api
    kernel = api in SOCKET_APIS or api in NETDEV_APIS or (api is None and family == "kernel")
    link = REFERENCE_LINKS["kernel" if kernel else "dpdk"]
    way = replace(case, mode=None, candidate=None, switch_cores=None, rx_mode=None)
    return replace(way, switch=link, port=None if kernel else port)
