# SPDX-License-Identifier: BSD-3-Clause
"""What a frame costs on its path: cycles of endpoints and switch, hardware events, energy. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_icbench.display.case_names import number, of_kind, path_of, short, traffic
from pytest_icbench.display.chart import Axes, Column, Figure, interval_columns, interval_spec, with_own
from pytest_icbench.display.points import SIZE, row
from pytest_icbench.model.figures import Throughput
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import grouped

_CYCLES = Column("cycles", "cycles a frame")
#: The most charts, one a path and traffic.
MOST = 12
_NOTE = (
    "Cycles of the time stamp counter in which frames moved. Soft interrupts in an endpoint's context count for it and"
    " for a switch in the kernel."
)


def parts(result: Result) -> Iterator[tuple[str, Estimate]]:
    """Yields the cycles of a frame by the part of the path that spends them, as far as they are known."""
    frames = result.frames
    known = {
        "sender": frames.sender_cycles_per_packet,
        "switch": frames.cycles_per_packet,
        "receiver": frames.receiver_cycles_per_packet,
    }
    for name, cycles in known.items():
        if (value := number(result, cycles)) is not None:
            yield name, value
    for part, events in result.frames.hardware.items():
        if (kernel := number(result, events.get("kernel_cycles"))) is not None:
            yield f"kernel, for the {part}", Estimate(kernel)


def describe(result: Result) -> str:
    """Returns the cost of a frame in words; empty where nothing of it is known."""
    cycles = ", ".join(f"{name} {short(value)}" for name, value in parts(result))
    texts = [f"cycles: {cycles}"] if cycles else []
    texts += [_events(part, events) for part, events in result.frames.hardware.items() if result.is_number]
    return "; ".join(texts)


def _events(part: str, events: Mapping[str, float]) -> str:
    if "energy_uj" in events:
        return f"energy {short(events['energy_uj'])} µJ, of all CPU packages with their idle cores"
    return f"{part} {short(events['instructions'])} instructions, {short(events['llc_misses'])} cache misses"


def by_size(results: Sequence[Result], _order: Sequence[str]) -> list[Figure]:
    """Returns a chart for each path: the cycles of a frame against its size, by the part that spends them."""
    groups = grouped(
        of_kind(results, Throughput), lambda result: (path_of(result), traffic(result)._replace(packet_size=0))
    )
    figures: list[Figure] = []
    for (path, key), group in groups.items():
        points = [
            (name, row(result, result.point.traffic.mean_bytes, cycles, 1, least=False))
            for result in group
            for name, cycles in parts(result)
        ]
        rows = tuple((point[0], name, *point[2:]) for name, point in points if point is not None)
        if len({point[2] for point in rows}) < 2 or len(figures) == MOST:
            continue
        least = min(point[2] for point in rows)
        at_least = ", ".join(f"{point[1]} {short(point[3])}" for point in rows if point[2] == least)
        figures.append(
            Figure(
                id=f"cost-{len(figures)}",
                kind="cost",
                title=f"{path}: cycles a frame, {key.say('packet_size')}",
                text=f"At {least:g} B: {at_least} cycles. {_NOTE}",
                spec=interval_spec(Axes(SIZE, _CYCLES), rows, with_own((), rows)),
                columns=interval_columns(SIZE, _CYCLES),
                rows=rows,
                values=("cycles", "low", "high"),
            )
        )
    return figures
