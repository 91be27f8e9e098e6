# SPDX-License-Identifier: BSD-3-Clause
"""Notes below a table: the meaning of its columns, then remarks on single results, grouped by kind. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from pytest_icbench.display.case_names import label, main_figure, microseconds, shared
from pytest_icbench.display.frame_rates import each_way
from pytest_icbench.kinds.kind import Kind
from pytest_icbench.kinds.registry import KINDS, kind_of
from pytest_icbench.model.api_techniques import GSO
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import NOTABLE
from pytest_icbench.report import host_states, remarks
from pytest_icbench.report.columns import ratio, to_plain
from pytest_icbench.report.overview import REFERENCES
from pytest_icbench.report.remarks import shares_cpus
from pytest_icbench.report.reported_intervals import sessions_of
from pytest_icbench.stats.quantiles import FEWEST_LAUNCHES
from pytest_icbench.verdict_reasons import PATH_REASONS
from pytest_icbench.wording import counted, grouped, show

#: The most cases that a note names, and the most characters about all but the first.
MOST_NAMED, MOST_SAID = 8, 400

_METRICS = {
    "trace": "trace: rate received at a load that changes every second, mean over its seconds",
    "ndr": "ndr: conditional throughput of a search for the greatest load without loss (RFC 9971)",
    "pdr": "pdr: conditional throughput of a search for the greatest load with at most the id's loss (RFC 9971)",
    "mfr": "mfr: maximum forwarding rate over several offered loads (RFC 2285)",
}


class Note(NamedTuple):
    """A remark on a result.

    Attributes:
        kind: the general part of the remark; results with the same kind share a note.
        detail: the part that is special to the result; may be empty.
        alone: the remark as a note on one result; if empty, kind and detail.
    """

    kind: str
    detail: str = ""
    alone: str = ""


def notes(results: Sequence[Result], *, brief: bool = False) -> list[str]:
    """Returns the notes on a table, one a line: columns first, then one for each kind of remark.

    ``brief``: whether to leave out remarks on the host and on launches, which the warnings of a report sum up.
    """
    return [*_legend(results), *remarks_on(results, brief=brief)]


def _of_kind(kind: Kind, has: Callable[[Result], object]) -> Callable[[Result], object]:
    return lambda result: kind_of(result) is kind and has(result)


#: The meaning of columns and marks, each with a predicate for the results that have it.
_LEGEND: tuple[tuple[Callable[[Result], object], str], ...] = (
    (ratio, "ratio: to the same applications on the same CPUs with no switch between (latency: p50 over p50)"),
    (to_plain, "of plain: to the same path without its function (latency: p50 over p50)"),
    (
        lambda result: result.side_by_side,
        "change: against its base, over pairs of launches in one state of the host; the values are of all launches",
    ),
    (
        lambda result: result.point.directions > 1,
        "both: both ends of a pair send at once; rate and loss are the sum of both directions (RFC 2544)",
    ),
    (shares_cpus, "shared CPU: both endpoints work on it in turn, which makes a path slower, never faster"),
    *((_of_kind(kind, has), text) for kind in KINDS for has, text in kind.legend),
)


def _lacks_launches(result: Result) -> bool:
    """Whether a value has no interval since the host was in several states."""
    main = main_figure(result)
    return len(result.levels) > 1 and main is not None and main.low is None


_LEGEND_AFTER_INTERVALS: tuple[tuple[Callable[[Result], object], str], ...] = (
    (
        lambda result: result.point.api == GSO,
        (
            "udp-gso: the kernel moves up to 64 datagrams as one buffer, so compare it with no other API:"
            " A1 and similar experiments measure a walk through the stack for each frame"
        ),
    ),
    (_lacks_launches, f"no interval: fewer than {FEWEST_LAUNCHES} launches in the state of the host that is compared"),
    (lambda result: result.at_least, '≥: the path carries at least this: "limit by" names what was the limit instead'),
)


def _legend(results: Sequence[Result]) -> list[str]:
    metrics = {result.metric for result in results}
    lines = [text for metric, text in _METRICS.items() if metric in metrics]
    lines += [text for has, text in _LEGEND if any(map(has, results))]
    if {"DPDK", "sockets"} <= set(map(remarks.programs, results)):
        lines.append("DPDK, sockets: what the applications at the ends use, which alone makes much of a difference")
    spread = [text for text in dict.fromkeys(map(remarks.rounds, results)) if text]
    if spread:
        lines.append(f"interval: of launches that were spread over the session, {' or '.join(spread)}")
    if sessions := [text for text in dict.fromkeys(map(sessions_of, results)) if text]:
        lines.append(f"interval: includes the spread of {' or '.join(sessions)}")
    lines += _floor(results)
    return lines + [text for has, text in _LEGEND_AFTER_INTERVALS if any(map(has, results))]


def _floor(results: Sequence[Result]) -> list[str]:
    """Returns what the 99th percentiles of paths without a switch say about other paths; empty without either."""
    kinds = {item.switch in REFERENCES for item in results if microseconds(item, item.round_trips.rtt_p99_ns)}
    return ["p99: is not compared, since what a path with no switch has of it is the host's"] if len(kinds) == 2 else []


def remarks_on(results: Sequence[Result], *, brief: bool = False) -> list[str]:
    """Returns a note for each kind of remark on results; for ``brief`` see ``notes``."""
    noted = [(result, note) for result in results for note in (_of_value if brief else _of)(result)]
    left_out = shared([result.case for result in results])
    return [_say(group, left_out) for group in grouped(noted, lambda remark: remark[1].kind).values()]


def _say(group: Sequence[tuple[Result, Note]], left_out: str) -> str:
    """Returns the note of the results that share a kind."""
    (result, note), *others = group
    if not others:
        text = note.alone or " ".join(filter(None, (note.kind, note.detail)))
        return text if result.case in text else f"{_name(result, '')}: {text}"
    named = [" ".join(filter(None, (_name(result, left_out), note.detail))) for result, note in group[:MOST_NAMED]]
    fitting = sum(length <= MOST_SAID for length in accumulate(map(len, named)))
    named = named[: max(fitting, 1)]
    more = [f"and {len(group) - len(named)} more"] if len(group) > len(named) else []
    between = "; " if any(note.detail for _, note in group) else ", "
    return f"{note.kind}, {len(group)} cases: {between.join([*named, *more])}"


def _name(result: Result, left_out: str) -> str:
    return label(result.case, left_out) + (f" ({result.host})" if result.host else "")


def _of(result: Result) -> Iterator[Note]:
    """Yields the remarks on a result."""
    yield from _of_value(result)
    yield from _on_the_host(result)
    yield from _on_the_launches(result)


def _of_value(result: Result) -> Iterator[Note]:
    yield from _on_the_verdict(result)
    yield from _on_the_load(result)
    if result.reference_evidence:
        yield Note(f"no ratio, {result.reference_evidence.splitlines()[0]}")


def _on_the_verdict(result: Result) -> Iterator[Note]:
    if not result.is_number and result.evidence:
        yield Note(result.evidence.splitlines()[0])
    if result.is_number and result.verdict in NOTABLE and result.reason:
        # The sentence names its case. Without the name, equal sentences share a note.
        reason = result.reason.removeprefix(f"{result.case}: ")
        yield Note(f"{result.verdict}: {reason}", alone=f"{result.verdict}: {result.reason}")


def _on_the_host(result: Result) -> Iterator[Note]:
    if disturbed := remarks.disturbance(result):
        yield Note("disturbed", f"({disturbed.removeprefix('disturbed: ')})", disturbed)
    if ways := each_way(result):
        yield Note("each direction", f"({ways})", f"each direction: {ways}")
    if levels := host_states.levels(result):
        yield Note("states of the host", f"({levels.partition(': ')[2]})", levels)
    if waited := host_states.waited(result):
        yield Note(waited)
    if (dependence := remarks.dependence(result)) and result.dependence is not None:
        widened = f"(intervals are {result.dependence.widening:.1f} times as wide)"
        yield Note("launches depend on those before them", widened, dependence)
    if drift := remarks.drift(result):
        yield Note("drifted while measured", remarks.drifted(result.drift or 0.0), drift)


def _on_the_load(result: Result) -> Iterator[Note]:
    for text in (
        remarks.table(result),
        remarks.clock_step(result),
        remarks.crowding(result),
        remarks.lost_by_hop(result),
        remarks.side_by_side(result),
        remarks.noisy_neighbour_effect(result),
        remarks.load_changes(result),
        remarks.wakeups(result),
        *kind_of(result).remarks(result),
        remarks.describe_losses(result, remarks.FEW_EVENTS),
    ):
        if text:
            yield Note(text)
    if result.generator_bound and result.metric == "fixed" and result.is_number:
        asked, fell_short = _shortfall(result)
        yield Note(f"the sender fell short of {asked}", fell_short)


def _on_the_launches(result: Result) -> Iterator[Note]:
    if unsettled := result.unsettled_launches:
        subject = result.figures.NOUN
        launches = f"{unsettled} of {counted(result.launches, 'launch')}"
        end = "did not become stationary; see --icbench-max-warmup"
        yield Note(f"{subject} {end}", f"({launches})", f"the {subject} of {launches} {end}")
    of_path = result.faults and all(fault.partition(":")[0] in PATH_REASONS for fault in result.faults)
    if result.repeated and not of_path:
        launches = counted(result.repeated, "launch")
        end = "repeated after a fault of the harness"
        yield Note(f"launches {end}", f"({result.repeated})", f"{launches} {end}")


def _shortfall(result: Result) -> tuple[str, str]:
    """Returns the requested rate, the number of launches that offered less, and the least offered rate."""
    rate = result.point.rate
    # A load that is a share of a searched rate has no number in the case.
    asked = f"{show(rate.pps * result.point.senders)} frames/s" if rate.pps is not None else rate.typed
    offers = [launch.offered_pps for launch in result.per_launch if launch.generator_bound]
    if not offers:
        return asked, ""
    least = show(min(offers))
    how = "sent requests late" if f"{least} frames/s" == asked else f"least {least} frames/s"
    return asked, f"in {len(offers)} of {counted(len(result.per_launch), 'launch')} ({how})"
