# SPDX-License-Identifier: BSD-3-Clause
"""The names of paths and traffics by which reports group results, and the main value of a result. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from pytest_icbench.model.figures import MAXIMA, PERCENTILES, Figures, time_field
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.model.traffic import l2_gbps
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import counted, grouped, printable

T = TypeVar("T")

METRIC_NAMES = {
    "frmol": "forwarding rate at maximum offered load",
    "mfr": "maximum forwarding rate",
    "ndr": "non-drop rate",
    "pdr": "partial-drop rate",
    "creation": "time to create a container",
    "closed-loop": "rate of an application's own client",
    "open-loop": "rate of answered requests at a given rate of requests",
    "fixed": "rate received at a fixed offered load",
    "trace": "rate received at a load that changes",
}


class Traffic(NamedTuple):
    """The load of a path; results with the same traffic and kind can be ranked."""

    packet_size: float
    burst: int
    pairs: int
    rate: str
    remote: bool
    host: str = ""
    mix: str = ""
    flows: str = ""
    header: str = ""
    both: bool = False
    queues: int = 1
    routes: int = 0

    @property
    def ways(self) -> str:
        """The word for frames that both ends send; empty if only side a sends."""
        return "both ends at once" if self.both else ""

    @property
    def spread(self) -> str:
        """The words for several queues; empty for one queue."""
        return f"{self.queues} queues" if self.queues > 1 else ""

    @property
    def table(self) -> str:
        """The words for the routes of a table; empty without one."""
        return counted(self.routes, "route") if self.routes else ""

    @property
    def frames(self) -> str:
        """The frames in words: ``64 B``, or ``simple (353.8 B on average)``."""
        return f"{self.mix} ({self.packet_size:.1f} B on average)" if self.mix else f"{self.packet_size:.0f} B"

    @property
    def size(self) -> str:
        """The frames with all that distinguishes them except bursts, pairs and rate."""
        flows = self.flows and f"{self.flows} flows"
        return ", ".join(filter(None, (self.frames, self.header, flows, self.ways, self.spread, self.table)))

    load: str = ""
    paired: bool = True

    def say(self, *without: str) -> str:
        """Returns ``64 B, bursts of 32, 1 pair, flat out`` without the named parts, such as a chart's axis."""
        parts = {
            "packet_size": self.frames,
            "burst": "single frames" if self.burst == 1 else f"bursts of {self.burst}",
            **({"header": self.header} if self.header else {}),
            **({"flows": f"{self.flows} flows"} if self.flows else {}),
            **({"direction": self.ways} if self.both else {}),
            **({"queues": self.spread} if self.spread else {}),
            **({"routes": self.table} if self.table else {}),
            "pairs": counted(self.pairs, "pair"),
            "rate": "flat out" if self.rate == "max" else f"at {self.rate}" + ("/s" if self.rate[-1:] in "kM" else ""),
        }
        if self.load:
            parts = {"load": self.load, **({"pairs": parts["pairs"]} if self.paired else {})}
        texts = [text for name, text in parts.items() if name not in without]
        return ", ".join([*texts, *(["two hosts"] if self.remote else []), *([self.host] if self.host else [])])


def traffic(result: Result) -> Traffic:
    """Returns a result's traffic. The rate is the file's text, since a later version may know others."""
    point, rate = result.point, result.axes.get("rate")
    return Traffic(
        point.traffic.mean_bytes,
        point.burst,
        point.pairs,
        "max" if rate is None else rate_text(rate),
        point.remote,
        result.host or "",
        point.traffic.mix or "",
        point.traffic.flows or "",
        point.traffic.header or "",
        point.traffic.both,
        point.traffic.queues,
        point.traffic.routes or 0,
        point.load.comparable,
        point.load.PAIRED,
    )


def without_rate(result: Result) -> Traffic:
    """Returns a result's traffic at any rate."""
    return traffic(result)._replace(rate="")


def have_two_sizes(results: Iterable[Result]) -> bool:
    """Whether frames have two sizes: then the first screen has both, and a line would have two points."""
    return len({traffic(result).packet_size for result in results}) == 2


def hosts_apart(results: Sequence[Result]) -> list[Result]:
    """Returns the results; if several machines measured, ``host`` names each result's machine: ``host 1``.

    Values of different machines must not be compared, not even if their parts are equal. Machines are numbered in the
    order of appearance, and a case on two hosts names both. Results of a single machine or a single pair are unchanged.
    """
    pairs = [_machines(result) for result in results]
    if all(len({pair[end] for pair in pairs if len(pair) > end}) < 2 for end in (0, 1)):
        return list(results)
    numbers = _numbers(pairs)
    names = {
        pair: f"host{'s' if len(pair) > 1 else ''} {' and '.join(str(numbers[machine]) for machine in pair)}"
        for pair in pairs
    }
    return [replace(result, host=names[pair]) for result, pair in zip(results, pairs, strict=True)]


def host_legend(results: Sequence[Result]) -> list[str]:
    """Returns a line for each machine that explains ``host 1``; nothing for a single machine."""
    if not any(result.host for result in hosts_apart(results)):
        return []
    numbers = _numbers(map(_machines, results))
    descriptions: dict[str, str] = {}
    for result in results:
        for identity in _identities(result):
            cpus = f"{identity['cpus']} CPUs" if identity.get("cpus") else None
            known = [str(part) for part in (identity.get("cpu_model"), cpus) if part]
            machine = _machine(identity)
            descriptions.setdefault(machine, ", ".join([*known, f"machine {machine}"]))
    return [printable(f"host {number}: {descriptions[machine]}") for machine, number in numbers.items()]


def _numbers(pairs: Iterable[tuple[str, ...]]) -> dict[str, int]:
    machines = dict.fromkeys(machine for pair in pairs for machine in pair)
    return {machine: number for number, machine in enumerate(machines, start=1)}


def _machines(result: Result) -> tuple[str, ...]:
    """Returns the machines that measured: this one, and for a case on two hosts the other one."""
    return tuple(map(_machine, _identities(result)))


def _machine(identity: Mapping[str, Any]) -> str:
    return str(identity.get("machine") or "unknown")


def _identities(result: Result) -> list[Mapping[str, Any]]:
    identity = result.identity
    return [identity, *([identity["remote"]] if identity.get("remote") else [])]


def rate_text(rate: object) -> str:
    """Returns ``1M`` for 1000000 and ``1.5M`` for 1500000; texts stay as they are."""
    if not isinstance(rate, int):
        return printable(str(rate))
    for unit, suffix in ((1_000_000, "M"), (1_000, "k")):
        if rate >= unit and rate * 1000 % unit == 0:
            return f"{rate / unit:.3f}".rstrip("0").rstrip(".") + suffix
    return str(rate)


def path_of(result: Result) -> str:
    """Returns the part of a case's id before the traffic: switch, port, mode, candidate, cores, function, API.

    For created containers it is their kind. The kind of nodes that a case names follows, then in brackets the run and
    other distinguishing facts.
    """
    point = result.point
    parts = [point.load.path(result.switch)]
    if point.port:
        parts[0] += f"+{point.port}"
    if point.mode_label:
        parts[0] += f":{point.mode_label}"
    if point.switch_cores is not None:
        parts.append(f"c{point.switch_cores}")
    if point.rx_mode is not None:
        parts.append(f"rx:{point.rx_mode}")
    if point.function is not None:
        parts.append(f"via:{point.function}" + (f"-x{point.chain}" if point.chain > 1 else ""))
    parts += [
        f"{name}{text}" for name, text in (("share", point.cpu_share), ("cap", point.cpu_quota)) if text is not None
    ]
    parts += [f"beside:{point.noisy_neighbour}"] if point.noisy_neighbour is not None else []
    parts += [point.isolation] if point.isolation is not None else []
    if point.api:
        parts.append(point.api)
    parts += [*point.call_parts, *([point.node] if point.node is not None else [])]
    of = ", ".join(filter(None, (result.run, result.apart)))
    return printable("-".join(parts) + (f" ({of})" if of else ""))


def without_length(result: Result) -> str:
    """Returns the path's name without the length of its chain."""
    return path_of(replace(result, axes={**result.axes, "chain": 1}))


def in_order(results: Iterable[Result], order: Sequence[str]) -> list[Result]:
    """Returns the results in the order of their series."""
    return sorted(results, key=lambda result: order.index(path_of(result)))


def gbps_per_pps(result: Result) -> float:
    """Returns the Gbit/s of one frame per second, from the frames that were received."""
    mean_bytes = result.frames.mean_frame_bytes
    return result.point.traffic.gbps_per_pps if mean_bytes is None else l2_gbps(mean_bytes)


def number(result: Result, value: T | None) -> T | None:
    """Returns a value of the result; None for a measurement that is no number."""
    return value if result.is_number else None


def microseconds(result: Result, time_ns: float | None) -> str:
    """Formats a time of a result in microseconds; empty without one."""
    time_ns = number(result, time_ns)
    return "" if time_ns is None else three(time_ns / 1000)


def of_kind(results: Iterable[Result], kind: type[Figures]) -> list[Result]:
    """Returns the results of a kind."""
    return [result for result in results if isinstance(result.figures, kind)]


def maxima(results: Iterable[Result]) -> list[Result]:
    """Returns the results of a path's capability in frames per second."""
    return [result for result in results if result.metric in MAXIMA and not result.rates.back_to_back]


def main_figure(result: Result) -> Estimate | None:
    """Returns the value by which results of a dimension are compared.

    It is the median round trip, the median time to create a container, frames per second, or operations per second.
    """
    return number(result, result.figures.main)


def main_unit(result: Result) -> tuple[str, float]:
    """Returns the unit in which reports show the main value, and the factor to it."""
    return result.figures.main_unit


def three(value: float) -> str:
    """Formats a number with three significant digits: ``0.240``, ``16.1``, ``1,485``."""
    return (
        f"{value:,.0f}" if abs(value) >= 100 or not value else f"{value:#.3g}" if abs(value) >= 1e-3 else short(value)
    )


def interval_text(result: Result, shown: Callable[[float], str] = three) -> str:
    """Returns the interval of the main value in its unit: ``4.90 to 5.10``; empty without one.

    ``≥ 4.90 to 5.10`` is that of a rate which is "at least": see ``Result.at_least``.
    """
    main, factor = main_figure(result), main_unit(result)[1]
    if main is None or main.low is None or main.high is None:
        return ""
    return f"{'≥ ' if result.at_least else ''}{shown(main.low * factor)} to {shown(main.high * factor)}"


def value_text(result: Result, shown: Callable[[float], str] = three, factor: float | None = None) -> str:
    """Returns the main value for places without its interval; a rate "at least" is its lower end: ``≥ 4.90``.

    ``factor``: to another unit than that of the main value.
    """
    main, factor = main_figure(result), main_unit(result)[1] if factor is None else factor
    if main is None:
        return ""
    if not result.at_least:
        return shown(main * factor)
    return f"≥ {shown((main if main.low is None else main.low) * factor)}"


def limit(result: Result) -> str:
    """Returns what limited a rate: ``path`` where the endpoints' work is the path, as the kernel's; empty if unknown.

    A result is "at least" where it is anything but ``switch``, ``path`` or unknown; ``ring`` only if the switch
    counted time left.
    """
    if not result.is_number:
        return ""
    inside = {"endpoint": "path"} if not result.lower_bound else {"unknown": "load"}
    limit = inside.get(result.bottleneck, result.bottleneck)
    return "" if limit == "unknown" else printable(limit)


def short(value: float) -> str:
    """Formats a number for texts: four significant digits, whole thousands with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def times(result: Measurement, stem: str, *names: str) -> dict[str, Estimate | None]:
    """Returns times (ns) of a result by name, by default its percentiles: of ``rtt`` and ``p99.9`` ``rtt_p99_9_ns``."""
    return {name: result.estimate(time_field(stem, name)) for name in names or PERCENTILES}


def percentiles(times: Mapping[str, float | None], greatest: float | None = None) -> str:
    """Returns ``p50 20 µs, p99 31 µs``: the known percentiles and the greatest time. Times are in ns."""
    named = {**times, "max": greatest}
    return ", ".join(f"{name} {short(value / 1e3)} µs" for name, value in named.items() if value is not None)


def describe_times(
    result: Result, times: Mapping[str, float | None], greatest: float | None = None, samples: int = 0, *more: str
) -> str:
    """Returns times in ns as a text, with the number of answers and further parts; empty for no number."""
    text = percentiles(times, greatest) if result.is_number else ""
    return text and ", ".join([text, *([f"{samples:,} answers"] if samples else []), *more])


def millions(count: int) -> str:
    """Formats a count for charts: whole below a million, then with four digits."""
    return f"{count:,}" if count < 1_000_000 else f"{count / 1e6:.4g}M"


def shared(cases: Sequence[str]) -> str:
    """Returns the end that all ids share, at most burst, pairs and rate; empty for fewer than two ids.

    Only an end is left out: ``-k`` finds the beginning of an id.
    """
    if len(cases) < 2:
        return ""
    ends = [[f"-{'-'.join(case.rsplit('-', parts)[1:])}" for case in cases] for parts in (3, 2, 1)]
    have_parts = all(case.count("-") >= 3 for case in cases)
    return next((same.pop() for end in ends if len(same := set(end)) == 1 and have_parts), "")


def label(case: str, left_out: str) -> str:
    """Returns an id without the given end."""
    return printable(case.removesuffix(left_out))


def disambiguated(results: Sequence[Result]) -> list[Result]:
    """Returns the results; those with equal names have ``apart``.

    A chart has one value for each series and place, and results with equal names would become a zigzag.
    An axis in which two results of a path differ is named in all results of the path, so that its lines are not broken.
    Results without such an axis are numbered, from the second one on.
    """
    axes: dict[tuple[str, str, str], dict[str, None]] = {}
    for group in grouped(results, _place).values():
        facts = [_facts(result) for result in group]
        names = [name for name in dict.fromkeys(name for known in facts for name in known) if _differ(facts, name)]
        if names:
            axes.setdefault(_line(group[0]), {}).update(dict.fromkeys(names))
    named = [_with(result, _said(result, axes.get(_line(result), ()))) for result in results]
    seen: Counter[Any] = Counter()
    counted = []
    for result in named:
        seen[_place(result)] += 1
        number = seen[_place(result)]
        counted.append(_with(result, f"no. {number}") if number > 1 else result)
    return counted


def _line(result: Result) -> tuple[str, str, str]:
    return result.dimension, result.metric, path_of(result)


def _place(result: Result) -> tuple[object, ...]:
    return (*_line(result), traffic(result))


def _facts(result: Result) -> dict[str, Any]:
    """Returns the facts that can distinguish results: the axes, the placement and the test."""
    return {**result.axes, "placement": result.placement, "test": _test(result)}


def _test(result: Result) -> str:
    """Returns the name of a result's test with the parameters that are not its case's: ``test_rate[fast]``."""
    name, _, parameters = (result.test or "").rpartition("::")[2].partition("[")
    case, parameters = result.case, parameters.removesuffix("]")
    own = parameters.replace(case, "").strip("-") if case in parameters else ""
    return f"{name}[{own}]" if own else name


def _differ(facts: Sequence[dict[str, Any]], name: str) -> bool:
    return any(known.get(name) != facts[0].get(name) for known in facts)


def _said(result: Result, names: Iterable[str]) -> str:
    """Returns the values of axes: ``flows 1000, dedicated``; empty for an axis that a result does not have."""
    parts = []
    for name in names:
        value = _facts(result).get(name)
        word = name.replace("_", " ")
        if value not in (None, False, ""):
            parts.append(word if value is True else str(value) if name in ("placement", "test") else f"{word} {value}")
    return ", ".join(parts)


def _with(result: Result, text: str) -> Result:
    return replace(result, apart=", ".join(filter(None, (result.apart, text)))) if text else result
