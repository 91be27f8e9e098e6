# SPDX-License-Identifier: BSD-3-Clause
"""The path under test of one case, from sender to receiver: CPUs, versions, cycles, frames at each arrow.

``charts.js`` shows the rows as a list with one station or arrow a line, which fits a narrow screen and paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.display.case_names import millions, number, value_text
from pytest_icbench.display.chart import CASE, Column, Figure
from pytest_icbench.kinds.registry import kind_of
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.path import FramePath
from pytest_icbench.report.overview import REFERENCES
from pytest_icbench.report.remarks import shares_cpus

_COLUMNS = (
    CASE,
    Column("kind", "kind"),
    Column("title", "station"),
    Column("detail", "facts"),
    Column("busy", "busy share"),
    Column("limit", "the limit"),
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A station or an arrow of the path.

    Attributes:
        kind: ``box`` for a container, switch or function, ``ring``, or ``arrow``.
        busy: share of time in which its CPU had work.
        limit: whether it limited the rate.
    """

    kind: str
    title: str
    details: tuple[str, ...] = ()
    busy: float | None = None
    limit: bool = False


def path_chart(result: Result) -> Figure | None:
    """Returns the path under test of a case; None for a case whose axes are unknown."""
    if not result.switch or not result.axes:
        return None
    rows = (
        (
            result.case,
            part.kind,
            part.title,
            "\n".join(part.details),
            None if part.busy is None else round(part.busy, 3),
            part.limit,
        )
        for part in _parts(result)
    )
    return Figure(
        id=f"path-{result.dimension}-{re.sub(r'[^A-Za-z0-9]', '-', result.case + (result.run or ''))}",
        kind="path",
        title="The path under test",
        text=_limit_text(result) or "Frames go from top to bottom.",
        spec={},
        columns=_COLUMNS,
        rows=tuple(rows),
    )


def _limit_text(result: Result) -> str:
    """Returns what limited the rate and why, and whether the rate is a floor."""
    if not (result.figures.HAS_LIMIT and result.is_number):
        return ""
    if result.bottleneck == "unknown":
        return f"Limit: unknown, {result.bottleneck_evidence}." if result.bottleneck_evidence else ""
    evidence = f", {result.bottleneck_evidence}" if result.bottleneck_evidence else ""
    floor = f" So the path carries {value_text(result)} Mpps." if result.at_least and value_text(result) else ""
    return f"Limit: {result.bottleneck}{evidence}.{floor}"


def _parts(result: Result) -> list[_Part]:
    limits = _limits(result)
    first, last = _ends(result, limits)
    kernel = (result.point.api or "") not in ("", "dpdk") or result.switch in ("linux-bridge", "veth")
    size = result.settings.get("ring")
    port = result.point.port or ("network interface" if kernel else "ring")
    ring = port if kernel or not size else f"{port}, {size} descriptors"
    sent, received = _arrows(result)
    if result.switch in REFERENCES:
        ends = _Part("ring", f"{result.switch}: {ring}", limit=bool(limits & {"ring in", "ring out"}))
        return [first, _Part("arrow", sent), ends, *_function(result), _Part("arrow", received), last]
    taken, given = _switch_counters(result)
    return [
        first,
        _Part("arrow", sent),
        _Part("ring", ring, limit="ring in" in limits),
        _Part("arrow", taken),
        _switch(result, limit="switch" in limits),
        *_function(result),
        _Part("arrow", given),
        _Part("ring", ring, limit="ring out" in limits),
        _Part("arrow", received, limit="link" in limits),
        last,
    ]


def _limits(result: Result) -> set[str]:
    """Returns the stations that limited the rate. Of two rings or two ends it is the one that the counters name."""
    if not (result.figures.HAS_LIMIT and result.is_number):
        return set()
    if result.bottleneck == "ring":
        return {"ring out" if "lost" in result.bottleneck_evidence else "ring in"}
    if result.bottleneck == "endpoint" and (ends := kind_of(result).limiting_ends):
        return set(ends)
    if result.bottleneck == "endpoint":
        return {"receiver" if "receiver" in result.bottleneck_evidence else "sender"}
    if result.bottleneck == "host":
        return {"sender", "receiver"}
    return {result.bottleneck}


def _ends(result: Result, limits: set[str]) -> tuple[_Part, _Part]:
    """Returns the containers of both sides."""
    cpus = _mapping(result.treatment.get("cpus"))
    every = [int(cpu) for cpu in cpus.get("endpoints") or () if isinstance(cpu, int)]
    path = FramePath(result.point.pairs)
    names, loops = result.figures.ENDS, ("sender", "receiver")
    roles = loops
    if result.point.directions > 1:
        names, loops = ("duplex end",) * 2, ("sender",) * 2  # whose loop also receives
    ends = []
    sides = (path.leaders, path.followers)
    for name, loop, role, side, places in zip(names, loops, roles, "ab", sides, strict=True):
        side_cpus = [every[place] for place in places if place < len(every)]
        several = f" {result.point.pairs}" if result.point.pairs > 1 else ""
        title = f"{'containers' if several else 'container'} {side}:{several} {name}{'s' if several else ''}"
        shared = " (shared)" if shares_cpus(result) else ""
        where = f"CPU {_listed(side_cpus)}{shared}" if side_cpus else ""
        yields = f"yields every {cpus['yield_every']} polls" if cpus.get("yield_every") else ""
        cycles = number(result, result.estimate(f"{loop}_cycles_per_packet"))
        details = (
            ", ".join(filter(None, (result.point.api or "", where))),
            yields,
            "" if cycles is None else f"{cycles:,.0f} cycles a frame",
        )
        busy = number(result, result.value(f"{loop}_busy_share"))
        ends.append(_Part("box", title, tuple(filter(None, details)), busy, role in limits))
    return ends[0], ends[1]


def _switch(result: Result, *, limit: bool) -> _Part:
    switch = _mapping(result.treatment.get("switch"))
    cpus = [cpu for cpu in _mapping(result.treatment.get("cpus")).get("switch") or () if isinstance(cpu, int)]
    version = str(switch.get("version") or "")
    dpdk = str(result.treatment.get("dpdk") or "")
    cycles = number(result, result.frames.cycles_per_packet)
    busy = [launch.busy_share for launch in result.per_launch if launch.busy_share is not None]
    workers = f"{len(cpus)} worker{'s' if len(cpus) > 1 else ''}, CPU {_listed(cpus)}" if cpus else ""
    details = (
        workers or "in the kernel, on the sender's CPU",
        ", ".join(filter(None, (f"version {version}" if version else "", f"DPDK {dpdk}" if cpus and dpdk else ""))),
        "" if cycles is None else f"{cycles:,.0f} cycles a frame",
    )
    name = result.switch + (f":{result.point.mode_label}" if result.point.mode_label else "")
    share = sum(busy) / len(busy) if busy and result.is_number else None
    return _Part("box", name, tuple(filter(None, details)), share, limit)


def _function(result: Result) -> list[_Part]:
    """Returns the network function to which the switch sends frames between the ends; empty without one."""
    name, works = result.point.function, result.functions or ()
    if name is None:
        return []
    facts = _mapping(result.treatment.get("function"))
    acl_drops = [work.acl_drops for work in works if work.acl_drops is not None]
    memory = [work.memory_bytes for work in works if work.memory_bytes is not None]
    cycles = [work.cycles_per_frame for work in works if work.cycles_per_frame is not None]
    busy = [work.busy_share for work in works if work.busy_share is not None]
    counted = [f"denied {millions(sum(acl_drops))}"] if acl_drops else []
    full = sum(work.table_full or 0 for work in works)
    counted += [f"table full for {millions(full)}"] if full else []
    counted += [f"{max(memory) / 2**20:.1f} MiB"] if memory else []
    counted += [f"fairness {work.fairness_index:.3f}" for work in works if work.fairness_index is not None]
    details = (
        ", ".join(str(facts[key]) for key in ("component", "version") if facts.get(key)),
        ", ".join(counted),
        f"{sum(cycles) / len(cycles):,.0f} cycles a frame" if cycles else "",
    )
    rows, hops = len({work.pair for work in works}), result.point.chain
    several = f"{rows} chains of {hops}" if hops > 1 else f"{rows} functions"
    single = f"chain of {hops}" if hops > 1 else "function"
    title = f"{several if rows > 1 else single}: {name}"
    share = sum(busy) / len(busy) if busy and result.is_number else None
    return [_Part("arrow", "to the function"), _Part("box", title, tuple(filter(None, details)), share)]


def _arrows(result: Result) -> tuple[str, str]:
    """Returns the counts of sent and refused frames, and of received and lost frames."""
    refused, full = (
        f"refused {millions(result.frames.refused)}",
        sum(launch.total("tx_full") for launch in result.per_launch),
    )
    if full:
        refused += f", {millions(full)} times full"
    return kind_of(result).ways(result, refused)


def _switch_counters(result: Result) -> tuple[str, str]:
    """Returns the drops that the switch counted at the input and the output of its ports."""
    ports = result.switch_counters or ()
    path = FramePath(result.point.pairs)
    texts = []
    both = result.point.directions > 1  # then each port is an input and an output
    for name, ends in (("rx_dropped", path.leaders), ("tx_dropped", path.followers)):
        counts = [getattr(port, name) for port in ports if port.index in (path.endpoints if both else ends)]
        known = [count for count in counts if count is not None]
        where = "input" if name == "rx_dropped" else "output"
        texts.append(f"dropped at its {where}: {millions(sum(known))}" if known else "")
    return texts[0], texts[1]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(cpus: Sequence[int]) -> str:
    shown = list(dict.fromkeys(cpus))
    return ", ".join(map(str, shown[:6])) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
