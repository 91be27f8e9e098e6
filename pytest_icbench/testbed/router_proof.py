# SPDX-License-Identifier: BSD-3-Clause
"""Proves that a switch routes: frames through it have to leave as a router sends them, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.protocol import Probe
from pytest_icbench.driver.switch.common.routing import destinations
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.routes import own_address
from pytest_icbench.testbed.exchange import Exchange, ExchangeTarget
from pytest_icbench.testbed.function_nodes import first_wrong, frames_of

#: A source that is no endpoint's, which a router replaces by its port's.
_STRANGER = "02:00:00:fd:00:01"
#: Addresses for documentation (RFC 5737, RFC 3849), to which no route leads.
_NOWHERE = {4: "203.0.113.1", 6: "2001:db8::1"}
#: The last hop: a packet with this TTL is not forwarded.
_LAST = 1


def prove_router(rig: ExchangeTarget, case: Case, connected: Callable[[], None]) -> str | None:
    """Sends frames to the peers and to destinations below the first, a middle and the last route of each sender.

    ``connected``: waits until the switch has taken over the ports of all endpoints. Returns None if each left with the
    TTL (hop limit) lowered by one, the MAC addresses of its next link and right checksums, and none that has no route
    or no hop left. Else one sentence with the first wrong frame. Raises WorkloadError, ProvisionError: a process or the
    switch has died.
    """
    addresses = [endpoint.address for endpoint in rig.endpoints]
    stage = [list(_probes(case, addresses, pair)) for pair in case.path.numbers]
    exchange = Exchange(rig, case)
    try:
        connected()
        sent, expected = frames_of(case, stage)
        arrived = exchange.exchange(sent, expected)
    finally:
        exchange.end()
    for pair, probes in zip(case.path.numbers, stage, strict=True):
        fault = first_wrong(case, f"{case.switch} as a router: pair {pair}", pair, probes, arrived)
        if fault is not None:
            return fault
    return None


def _probes(case: Case, addresses: list[Address], pair: int) -> Iterator[Probe]:
    version = case.ip_version or 4
    for forth, (sender, receiver) in ((True, case.path.ends(pair)), (False, case.path.ends(pair)[::-1])):
        source, peer = addresses[sender], addresses[receiver]
        targets = destinations(version, peer, case.routes_of(sender))
        start = replace(source, ip=own_address(version, source.ip))
        number = proof.FREE_PORT
        for ip in targets:
            for mac in (source.mac, _STRANGER):
                sent = proof.frame(replace(start, mac=mac), replace(peer, ip=ip), number)
                # The port's MAC address is that of the endpoint's peer: the source's, at the receiver's port.
                says = f"has to leave with TTL {proof.TTL - 1} from {source.mac}"
                yield Probe(forth, sent, proof.route_frame(sent, source.mac, peer.mac), says)
                number += 1
        lost = proof.frame(start, replace(peer, ip=_NOWHERE[version]), number)
        yield Probe(forth, lost, None, "has no route")
        late = proof.frame(start, replace(peer, ip=targets[-1]), number + 1, ttl=_LAST)
        yield Probe(forth, late, None, "has no hop left")
