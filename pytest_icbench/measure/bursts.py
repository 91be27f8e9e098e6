# SPDX-License-Identifier: BSD-3-Clause
"""The burst that a policer lets pass at once: a launch of trains, each behind a rest that fills its bucket. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionTerms
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings

#: Frames of a train beyond the burst, as a multiple of it, and the longest train.
_BEYOND, _LONGEST = 4, 20_000
#: A window has room for a train at this rate, and the bucket has so many times the time that it needs to fill.
_SLOW_PPS, _REST = 200_000, 4
_WINDOW_S, _TRAINS = 0.05, 4
#: A policer looks at the clock as seldom as this, in seconds (that of OVS counts milliseconds).
_TICK_S = 0.001


def burst_case(case: Case) -> Case:
    """Returns the case of the trains, which leave as fast as the port takes them."""
    return case.sending(rate=Rate())


def burst_settings(settings: Settings, terms: Sequence[FunctionTerms]) -> Settings | None:
    """Returns the settings of the launch; None if no function has a burst."""
    policers = [one for one in terms if one.burst and one.set_pps]
    if not policers:
        return None
    frames = min(_BEYOND * max(one.burst or 0 for one in policers), _LONGEST)
    fill_s = max((one.burst or 0) / (one.set_pps or 1) for one in policers)
    window_s = max(_WINDOW_S, frames / _SLOW_PPS + _REST * fill_s)
    return replace(
        settings,
        warmup_s=0.0,
        max_warmup_s=0.0,
        duration_s=_TRAINS * window_s,
        window_s=window_s,
        skip_s=0.0,
        keep_s=None,
        stream=None,
        train=f"{frames}:{frames}:1",
    )


def wrong_burst(terms_by_pair: Sequence[FunctionTerms], launch: Launch) -> str | None:
    """Returns a sentence if a policer let more of a train pass than its burst and its rate allow, or less; else None.

    All of a train is policed between the beginning of its window and the last arrival. One good train is enough: a host
    that was busy may spoil others.
    """
    for pair, terms in enumerate(terms_by_pair, start=1):
        trains = [window for window in launch.windows if window.pair == pair and window.sent]
        if not terms.burst or not terms.set_pps or not trains:
            continue
        most = min(trains, key=lambda window: window.received - _allowed(window, terms))
        least = max(trains, key=lambda window: window.received - min(window.sent, terms.burst or 0))
        where = f"function {terms.function} of pair {pair}: of {{sent:,}} frames at once {{passed:,}} passed, and"
        if most.received > _allowed(most, terms):
            allowed = f" its burst of {terms.burst:,} and its rate allow {_allowed(most, terms):,.0f}"
            return where.format(sent=most.sent, passed=most.received) + allowed
        if least.received < min(least.sent, terms.burst) * (1 - terms.tolerance):
            return where.format(sent=least.sent, passed=least.received) + f" its burst is {terms.burst:,}"
    return None


def _allowed(window: Window, terms: FunctionTerms) -> float:
    """Returns how many frames of a train may pass."""
    span_s = max((window.last_ns or window.start_ns) - window.start_ns, 0) / 1e9 + _TICK_S
    return (terms.burst or 0) * (1 + terms.tolerance) + (terms.set_pps or 0) * (1 + terms.tolerance) * span_s + 1
