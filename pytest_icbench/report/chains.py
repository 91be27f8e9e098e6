# SPDX-License-Identifier: BSD-3-Clause
"""What reports say of functions that share a machine: where a chain lost frames, and who got which CPU. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_icbench.display.axes import short
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.result import Result
from pytest_icbench.report import remarks
from pytest_icbench.wording import counted

#: The most hops that are named, and the most functions with a part of a CPU that are.
_FEW, _FEW_FUNCTIONS = 3, 4


def losses(result: Result) -> str:
    """Returns the hops at which a chain lost frames, those that lost most first; empty without losses."""
    by_hop: Counter[int] = Counter()
    for account in result.frames.chains or ():
        by_hop.update({hop: lost for hop, lost in enumerate(account.lost_by_hop, start=1) if lost})
    if not by_hop:
        return ""
    hops, ranked = result.point.chain, by_hop.most_common()
    names = [
        f"{f'function {hop} of {hops}' if hop <= hops else 'the receiver'} {lost:,}" for hop, lost in ranked[:_FEW]
    ]
    if rest := ranked[_FEW:]:
        names.append(f"{len(rest)} others {sum(lost for _, lost in rest):,}")
    full = sum(account.table_full or 0 for account in result.frames.chains or ())
    why = f"; {full:,} of them because a table of connections was full" if full else ""
    return f"{counted(by_hop.total(), 'frame')} lost by hop (warm-up included): {', '.join(names)}{why}"


def crowding(result: Result) -> str:
    """Returns who shares CPUs with a chain's functions, and what that means flat out; empty where each has its own.

    Of functions side by side also how many CPUs they leave over.
    """
    treatment = result.treatment
    if result.point.chain == 1:
        return _oversubscription(result)
    cpus, functions = treatment.get("cpus"), treatment.get("function")
    if not isinstance(cpus, Mapping) or not isinstance(functions, Mapping):
        return ""
    function_cpus, endpoint_cpus = list(functions.get("cpus") or ()), list(cpus.get("endpoints") or ())
    if not function_cpus:
        return f"{result.point.chain} functions in a row work on their sender's CPU"
    used = len({*function_cpus, *endpoint_cpus})
    if used == len(function_cpus) + len(endpoint_cpus):
        return ""
    text = f"{len(function_cpus)} functions and {len(endpoint_cpus)} endpoints share {counted(used, 'CPU')}"
    if result.metric == "frmol":
        text += "; flat out, each spends its time on frames that a later one drops: search for a rate (pdr:0.5%)"
    return text


def _oversubscription(result: Result) -> str:
    """Returns whether functions side by side, their ends and the switch have a CPU each; empty for others."""
    point, cpus = result.point, result.treatment.get("cpus")
    functions, present = result.treatment.get("function"), result.identity.get("cpus")
    if point.pairs == 1 or point.one_cpu or not isinstance(cpus, Mapping) or not isinstance(functions, Mapping):
        return ""
    places = [list(each or ()) for each in (functions.get("cpus"), cpus.get("endpoints"), cpus.get("switch"))]
    names = (f"{point.pairs} functions", counted(len(places[1]), "endpoint"), counted(len(places[2]), "worker"))
    who = ", ".join(name for name, of_it in zip(names, places, strict=True) if of_it)
    threads, used = sum(map(len, places)), {cpu for of_it in places for cpu in of_it}
    if not used:
        return ""
    if len(used) < threads:
        return f"oversubscribed: {who} share {counted(len(used), 'CPU')}"
    left = f", which leave {present - len(used)} of {present} over" if isinstance(present, int) else ""
    return f"{who} have {counted(len(used), 'CPU')}{left}"


def side_by_side(result: Result) -> str:
    """Returns what functions that share a CPU got of it, with the error of CPU shares and quotas; empty for others."""
    point, works = result.point, result.functions or ()
    if not point.one_cpu or not works or not result.is_number:
        return ""
    kinds: dict[tuple[object, ...], list[FunctionWork]] = {}
    apart = bool(point.cpu_allocations) and len(works) <= _FEW_FUNCTIONS
    for name, work in zip(point.functions, works, strict=False):
        key: tuple[object, ...] = (f"{name} {work.pair}",) if apart else (name, work.cpu_share, work.cpu_quota)
        kinds.setdefault(key, []).append(work)
    texts = [_got(str(key[0]), alike) for key, alike in kinds.items()]
    pinged = _pinged(result) if point.mixed else ""
    weak = ". Each has a CPU group of its own, in which its yields are weaker" if point.cpu_allocations else ""
    return f"on one CPU: {'; '.join(texts)}{pinged}{weak}"


def _got(name: str, alike: Sequence[FunctionWork]) -> str:
    """Returns what functions got of their CPU, of several with the same name and allocation their sum."""
    first = alike[0]
    parts = [f"{word} {value} %" for word, value in (("share", first.cpu_share), ("cap", first.cpu_quota)) if value]
    text = (f"{len(alike)} x " if len(alike) > 1 else "") + name + (f" ({', '.join(parts)})" if parts else "")
    if first.goodput_pps is not None:
        text += f" {short(sum(work.goodput_pps or 0 for work in alike))} frames/s"
    errors = [work.goodput_error for work in alike if work.goodput_error is not None]
    if errors and first.alone_pps is not None:
        if len(alike) > 1:
            text += f", {short(first.alone_pps)} alone, errors {min(errors):+.1%} to {max(errors):+.1%}"
        else:
            text += f" of {short(first.alone_pps)} alone, error {errors[0]:+.1%}"
            if first.goodput_error_low is not None and first.goodput_error_high is not None:
                text += f" ({first.goodput_error_low:+.1%} to {first.goodput_error_high:+.1%})"
    shares = [work.cpu_used_share for work in alike]
    if None not in shares:
        text += f", {sum(share or 0 for share in shares):.0%} of the CPU time"
    batches = [work.batch_size for work in alike if work.batch_size is not None]
    return text + (f", {short(sum(batches) / len(batches))} frames at a time" if batches else "")


def _pinged(result: Result) -> str:
    """Returns the round trips through the first function beside the others, and alone on their CPU."""
    figures = {"p50": result.round_trips.rtt_p50_ns, "p99": result.round_trips.rtt_p99_ns}
    beside = remarks.percentiles({name: figure and figure.value for name, figure in figures.items()})
    alone = remarks.percentiles({name: remarks.floor(result)[name] for name in figures})
    if not beside:
        return ""
    return f". Round trips through {result.point.functions[0]}: {beside}" + (f"; alone {alone}" if alone else "")
