# SPDX-License-Identifier: BSD-3-Clause
"""The proof that the functions of a rig do their work: frames that go in at one end and what comes out at the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.protocol import Probe
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionCounters
from pytest_icbench.testbed.exchange import Exchange, ExchangeRig
from pytest_icbench.testbed.function_nodes import FunctionNodes


def prove(rig: ExchangeRig, case: Case, functions: FunctionNodes, connected: Callable[[], None]) -> str | None:
    """Sends each function's frames through it, in both directions.

    Args:
        connected: waits until the switch has taken over the ports of all endpoints.

    Returns:
        None if all came out as they have to and no other; else one sentence with the first wrong frame, or with the
        function's counter that does not agree.

    Raises:
        WorkloadError, ProvisionError: a process, the switch or a function has died.
    """
    functions.forget()  # a table that launches have filled has no room for a proof
    names = case.functions
    proofs = [functions.component.proof(name, ends) for name, ends in zip(names, functions.chains, strict=True)]
    before = functions.counters()
    exchange = Exchange(rig, case)
    try:
        connected()
        for stage in zip(*proofs, strict=True):
            sent, expected = _frames(case, stage)
            arrived = exchange.exchange(sent, expected)
            for pair, probes in zip(case.path.numbers, stage, strict=True):
                fault = _first_wrong(case, names[pair - 1], pair, probes, arrived)
                if fault is not None:
                    return fault
    finally:
        exchange.end()
    functions.check()
    return _counted(names, proofs, before, functions.counters())


def _frames(case: Case, stage: Iterable[Sequence[Probe]]) -> tuple[dict[int, list[bytes]], dict[int, int]]:
    """Returns the frames of a stage by their senders' indexes, and how many are expected by the receivers' ones."""
    sent: dict[int, list[bytes]] = {}
    expected: Counter[int] = Counter()
    for pair, probes in zip(case.path.numbers, stage, strict=True):
        leader, follower = case.path.ends(pair)
        for probe in probes:
            sender, receiver = (leader, follower) if probe.forth else (follower, leader)
            sent.setdefault(sender, []).append(probe.frame)
            expected[receiver] += probe.expected is not None
    return sent, dict(expected)


def _first_wrong(
    case: Case, function: str, pair: int, probes: Sequence[Probe], arrived: Mapping[int, Sequence[bytes]]
) -> str | None:
    """Returns a sentence on the first frame that is missing, was changed wrongly, or should not have arrived."""
    leader, follower = case.path.ends(pair)
    for forth, receiver, way in ((True, follower, "a to b"), (False, leader, "b to a")):
        # What the nodes' own kernels answer is no frame of the proof.
        came = Counter(data for data in arrived[receiver] if proof.is_proof(data))
        wanted = Counter(probe.expected for probe in probes if probe.forth is forth and probe.expected is not None)
        strange = list((came - wanted).elements())
        of_way = [probe for probe in probes if probe.forth is forth]
        for number, probe in enumerate(of_way, start=1):
            right = probe.expected is None or came[probe.expected] >= wanted[probe.expected]
            other = next(
                (data for data in strange if proof.frame_number(data) == proof.frame_number(probe.frame)), None
            )
            if right and other is None:
                continue
            came_as = "did not arrive" if other is None else f"arrived as {proof.describe(other)}"
            return (
                f"function {function} of pair {pair}: frame {number} of {len(of_way)} from {way}"
                f" ({proof.describe(probe.frame)}) {probe.says}, but {came_as}"
            )
        if strange:
            return f"function {function} of pair {pair}: a frame that nobody sent arrived: {proof.describe(strange[0])}"
    return None


def _counted(
    names: Sequence[str],
    proofs: Sequence[Sequence[Sequence[Probe]]],
    before: Sequence[FunctionCounters],
    after: Sequence[FunctionCounters],
) -> str | None:
    """Returns a sentence if the functions of a pair counted another number of denied frames than were denied."""
    for pair, stages in enumerate(proofs, start=1):
        denied = sum(probe.expected is None for stage in stages for probe in stage)
        readings = [(first.denied, last.denied) for first, last in zip(before, after, strict=True) if last.pair == pair]
        if any(None in reading for reading in readings):
            continue
        counted = sum((last or 0) - (first or 0) for first, last in readings)
        if counted != denied:
            name = names[pair - 1]
            return f"function {name} of pair {pair}: it counted {counted} denied frames, and {denied} were denied"
    return None
