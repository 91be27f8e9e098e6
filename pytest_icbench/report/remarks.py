# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on a result, apart from its main value, in words that tables, the page and JUnit share. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from pytest_icbench.display.case_names import percentiles, short
from pytest_icbench.kinds.latency.latency_columns import floor
from pytest_icbench.model import fitness
from pytest_icbench.model.api_techniques import SOCKET_APIS, TAP_API
from pytest_icbench.model.codec import encode
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.model.noisy_neighbour import excludes_one
from pytest_icbench.model.path import DIRECTION_NAMES
from pytest_icbench.model.trials import LossEvent
from pytest_icbench.model.verdict import NOTABLE
from pytest_icbench.wording import counted, grouped, percent, span

#: Ports that only DPDK opens.
_DPDK_PORTS = {"vhost-user", "memif", "pci"}
#: Smallest drift that is reported, as a part of the value.
NOTABLE_DRIFT = 0.01


def shares_cpus(result: Result) -> bool:
    """Whether endpoints of one host shared a CPU and yielded; if the CPUs are unknown, by the placement's name."""
    cpus = result.treatment.get("cpus")
    every = cpus.get("yield_every") if isinstance(cpus, Mapping) else None
    if result.dimension == "startup":  # one container at a time
        return False
    return result.placement == "cooperative" if every is None else bool(every)


def programs(result: Result) -> str:
    """Returns what the endpoints are programs of, ``DPDK`` or ``sockets``; empty if that is not known."""
    api, ports = result.point.api, set(result.treatment.get("endpoints") or ())
    if api is None:
        return "sockets" if ports == {"veth"} else "DPDK" if ports and ports <= _DPDK_PORTS else ""
    return "sockets" if api in SOCKET_APIS else "DPDK" if api != TAP_API else ""


def drift(result: Result) -> str:
    """Returns a sentence on the drift of the value if it is notable."""
    change = result.drift or 0.0
    if abs(change) < NOTABLE_DRIFT:
        return ""
    course = f"by {change:+.1%} from the first launch to the last" if abs(change) < 1 else drifted(change)
    return f"drifted {course}, so the median does not represent a steady state"


def drifted(change: float) -> str:
    """Returns a drift in short: ``+12 %``, or ``from 1.7 to 0.27 times its level``.

    A drift is relative to the level halfway, so the drift of a value that falls to a sixth is below -100 %.
    """
    if abs(change) < 1:
        return f"{'-' if change < 0 else '+'}{percent(change)}"
    first, last = (max(1 + side * change / 2, 0.0) for side in (-1, 1))
    return f"from {first:.2g} to {last:.2g} times its level"


def dependence(result: Result) -> str:
    """Returns a sentence on launches that depend on each other; empty if they seem not to."""
    reported = result.dependence
    if reported is None or not reported.likely:
        return ""
    depend = f"launches depend on those before them (correlation {reported.correlation:.2f})"
    return f"{depend}, so the interval is {reported.widening:.1f} times as wide"


def disturbance(result: Result) -> str:
    """Returns how many launches were disturbed, and by what; empty if the verdict's sentence says so already."""
    reported = fitness.disturbance(result)
    return "" if result.verdict in NOTABLE and reported in (result.reason or "") else reported


def rounds(result: Measurement) -> str:
    """Returns the number of rounds of the session over which the launches were spread; empty without rounds."""
    numbers = {launch.round for launch in result.per_launch if launch.round is not None}
    return f"in {counted(len(numbers), 'round')}" if result.ended_by == "rounds" and numbers else ""


def clock_step(result: Result) -> str:
    """Returns a sentence if the host's clock was set while the result was measured; else empty."""
    step_s = result.conditions.get("clock_step_s")
    if not isinstance(step_s, int | float):
        return ""
    course = "back" if step_s < 0 else "forward"
    return (
        f"the host's clock was set {course} by {span(abs(step_s))} meanwhile: rates and times are measured by another"
        " clock and hold, the time of day of its launches does not"
    )


def table(result: Result) -> str:
    """Returns how many routes a router's table has, how long they took, and which part is looked up; empty without."""
    routes, installed_s = result.point.traffic.routes, result.conditions.get("routes_installed_s")
    if routes is None:
        return ""
    took = f" installed in {span(installed_s)}" if isinstance(installed_s, int | float) else ""
    return "; ".join(filter(None, (counted(routes, "route") + took, result.point.unused_routes)))


def not_known(result: Result) -> str:
    """Returns the facts that the host did not report when the run began, and the claims that depend on them."""
    fitness: Any = result.conditions.get("fitness")
    missing = fitness.get("missing") if isinstance(fitness, Mapping) else None
    return "; ".join(str(sentence) for sentence in missing) if isinstance(missing, list | tuple) else ""


#: Numbers of listed loss events: in notes, and in facts of the page.
FEW_EVENTS, MANY_EVENTS = 5, 50


def describe_losses(result: Measurement, most: int = MANY_EVENTS) -> str | None:
    """Returns the first ``most`` loss events of a long run with times (UTC); None for other results.

    ``most``: with 0 only the number of loss events is returned.
    """
    count = result.frames.loss_event_count
    if count is None or (not count and not result.is_number):
        return None
    if not count:
        return "no frame was lost or refused"
    counted = f"{count} loss event{'s' if count > 1 else ''}"
    if not most:
        return counted
    shown = [_event(event, result.point.pairs > 1) for event in (result.frames.loss_events or ())[:most]]
    rest = [f"and {count - len(shown)} more (results.jsonl)"] if count > len(shown) else []
    return f"{counted}: {'; '.join([*shown, *rest])}"


def _event(event: LossEvent, several: bool) -> str:
    began = datetime.fromtimestamp(event.started_at, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    pair = f"pair {event.pair}, " if several else ""
    way = f"{DIRECTION_NAMES[event.direction]}, " if event.direction else ""
    return f"{began} UTC, {event.duration_s:.3g} s, {pair}{way}{event.lost:,} lost, {event.refused:,} refused"


def flat_long_run(result: Measurement) -> dict[str, Any]:
    """Flattens loss events and trains to names and values: ``back_to_back_frames`` …, and ``loss_events`` as a text."""
    trains: dict[str, Any] = {} if result.rates.back_to_back is None else encode(result.rates.back_to_back)
    flattened: dict[str, Any] = {f"back_to_back_{name}": value for name, value in trains.items()}
    return flattened | ({"loss_events": describe_losses(result)} if result.frames.loss_events else {})


#: The most hops, or changes of a load, that are named, and the most functions with a part of a CPU.
_FEW, _FEW_FUNCTIONS = 3, 4


def lost_by_hop(result: Result) -> str:
    """Returns the hops at which a chain lost frames, those that lost most first, or what a function's full table took.

    It is empty without losses.
    """
    by_hop: Counter[int] = Counter()
    for account in result.frames.chains or ():
        by_hop.update({hop: lost for hop, lost in enumerate(account.lost_by_hop, start=1) if lost})
    if not by_hop:
        full = sum(work.table_full or 0 for work in result.functions or ())
        return f"{full:,} frames found no room in a connection table" if full else ""
    hops, ranked = result.point.chain, by_hop.most_common()
    names = [
        f"{f'function {hop} of {hops}' if hop <= hops else 'the receiver'} {lost:,}" for hop, lost in ranked[:_FEW]
    ]
    if rest := ranked[_FEW:]:
        names.append(f"{len(rest)} others {sum(lost for _, lost in rest):,}")
    full = sum(account.table_full or 0 for account in result.frames.chains or ())
    why = f"; {full:,} of them because a connection table was full" if full else ""
    return f"{counted(by_hop.total(), 'frame')} lost by hop (warm-up included): {', '.join(names)}{why}"


def crowding(result: Result) -> str:
    """Returns which threads share CPUs with a chain's functions, and the effect flat out; empty if each has a CPU.

    For functions in parallel it also says how many CPUs are left over.
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
    """Returns whether functions in parallel, their endpoints and the switch have a CPU each; else empty."""
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
    """Returns what functions on one CPU got of it, with the errors of CPU shares and quotas; else empty."""
    point, works = result.point, result.functions or ()
    if not point.one_cpu or not works or not result.is_number:
        return ""
    apart = bool(point.cpu_allocations) and len(works) <= _FEW_FUNCTIONS
    both = zip(point.functions, works, strict=False)
    named = [(f"{name} {work.pair}" if apart else name, work) for name, work in both]
    kinds = grouped(named, lambda item: (item[0], item[1].cpu_share, item[1].cpu_quota))
    texts = [_got(key[0], [work for _, work in alike]) for key, alike in kinds.items()]
    pinged = _pinged(result) if point.mixed else ""
    weak = ". Each has a separate CPU group, in which its yields are weaker" if point.cpu_allocations else ""
    return f"on one CPU: {'; '.join(texts)}{pinged}{weak}"


def _got(name: str, alike: Sequence[FunctionWork]) -> str:
    """Returns what functions with the same name and allocation got of their CPU, as a sum."""
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
    """Returns the round trips through the first function: with all functions on the CPU, and alone on it."""
    figures = {"p50": result.round_trips.rtt_p50_ns, "p99": result.round_trips.rtt_p99_ns}
    shared = percentiles({name: figure and figure.value for name, figure in figures.items()})
    alone = percentiles({name: floor(result)[name] for name in figures})
    if not shared:
        return ""
    return f". Round trips through {result.point.functions[0]}: {shared}" + (f"; alone {alone}" if alone else "")


def noisy_neighbour_effect(result: Result) -> str:
    """Returns the effect of the noisy neighbour on each figure; empty without one, and without a number."""
    noisy_neighbour = result.frames.noisy_neighbour
    if noisy_neighbour is None or not result.is_number:
        return ""
    texts = []
    for name, ratio in noisy_neighbour.ratios.items():
        text = f"{name} {short(ratio.value)} times"
        if ratio.low is not None and ratio.high is not None:
            text += f" ({short(ratio.low)} to {short(ratio.high)})"
        texts.append(text + ("" if excludes_one(ratio) else ", no change shown"))
    what = (
        "against none"
        if noisy_neighbour.busy is None
        else (f"(busy {noisy_neighbour.busy:.0%} of its time) against none")
    )
    kept = (
        "" if noisy_neighbour.cache_bytes is None else (f"; held of the L3 cache: {_held(noisy_neighbour.cache_bytes)}")
    )
    where = "" if result.point.isolation is None else f" isolated by {result.point.isolation}"
    pairs = counted(noisy_neighbour.pairs, "pair")
    return (
        f"noisy neighbour {result.point.noisy_neighbour}{where} {what}: {'; '.join(texts)}; {pairs} of launches,"
        f" intervals of {noisy_neighbour.confidence:.1%}{kept}"
    )


def _held(cache_bytes: dict[str, float]) -> str:
    return ", ".join(f"{name} {octets / 2**20:.1f} MiB" for name, octets in cache_bytes.items())


def wakeups(result: Measurement) -> str:
    """Returns how often the switch's workers were woken, and their part of their CPUs; empty for those that poll."""
    launches = [launch for launch in result.per_launch if launch.wakeups_per_s is not None]
    if not launches:
        return ""
    woken = median([launch.wakeups_per_s or 0.0 for launch in launches])
    used = [launch.busy_share for launch in launches if launch.busy_share is not None]
    of_cpus = f" and ran {percent(median(used))} of the time" if used else ""
    return f"its workers were woken {woken:,.0f} times a second{of_cpus}"


def load_changes(result: Result) -> str:
    """Returns when the changes of a load arrived; empty for a load that stays."""
    changes = result.frames.followed
    if not changes or not result.is_number:
        return ""
    times = [change.follow_s for change in changes if change.follow_s is not None]
    text = f"{len(times)} of {counted(len(changes), 'change')} of the load arrived to 95 % before the next one"
    if times:
        text += f", after {short(median(times))} s (median; at most {short(max(times))} s)"
    late = [change for change in changes if change.follow_s is None]
    named = [
        f"pair {change.pair} second {change.second}, {short(change.received_pps)} of {short(change.to_pps)} frames/s"
        for change in late[:_FEW]
    ]
    return text + (f"; not so: {'; '.join(named)}" if named else "") + ("; …" if len(late) > _FEW else "")
