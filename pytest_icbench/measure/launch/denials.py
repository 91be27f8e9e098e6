# SPDX-License-Identifier: BSD-3-Clause
"""Holds a launch to its denied flows: none of their frames passed, and the functions counted each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.function_facts import FunctionCounters, FunctionTerms
from pytest_icbench.wording import counted

#: Control frames that a sender sends at most: its end mark, and two more of it.
_CONTROL_MOST = 3

Couples = Sequence[tuple[ProcessOutput, ProcessOutput]]


def passed(terms: Sequence[FunctionTerms], couples: Couples) -> str | None:
    """Returns a sentence if a frame of a denied flow arrived; None if not.

    Args:
        terms: of the function of each pair.
        couples: sender and receiver of each pair, in each direction.
    """
    for _, receiver in couples:
        totals = receiver.summary.received if receiver.summary else None
        if totals and totals.denied_passed:
            return (
                f"{_named(terms, receiver.pair)}: {counted(totals.denied_passed, 'frame')} of flows that it has to deny"
                f" arrived at {receiver.name}"
            )
    return None


def miscounted(
    terms: Sequence[FunctionTerms],
    couples: Couples,
    before: Sequence[FunctionCounters],
    after: Sequence[FunctionCounters],
) -> str | None:
    """Returns a sentence if functions counted more denied frames than were sent to them, or did not count some of them.

    Frames may be lost on the way to a function. How many from side a were is known; a function does not tell from side
    b, so that what side b sent bounds the counter from above alone.

    Args:
        before, after: the functions' counters before and after the launch; functions that count none are not judged.
    """
    for pair in dict.fromkeys(sender.pair for sender, _ in couples):
        sent = [one.summary.sent for one, _ in couples if one.pair == pair and one.summary and one.summary.sent]
        row = [
            (first, last)
            for first, last in zip(before, after, strict=True)
            if last.pair == pair and first.denied is not None and last.denied is not None
        ]
        if not sent or not row or not any(totals.denied for totals in sent):
            continue
        denied = sum(totals.denied for totals in sent)
        seen = sum((last.denied or 0) - (first.denied or 0) for first, last in row)
        astray = _astray(*row[0], sent[0].sequences) + sum(totals.denied for totals in sent[1:])
        if seen > denied or denied - seen > astray:
            unseen = f", and at most {astray:,} of them did not get as far" if seen < denied else ""
            return f"{_named(terms, pair)}: it counted {seen:,} denied frames, and {denied:,} were sent to it{unseen}"
    return None


def _astray(first: FunctionCounters, last: FunctionCounters, sent: int) -> int:
    """Returns how many frames of side a, at most, were lost before a function could look whether to deny them."""

    def difference(name: str) -> int | None:
        earlier, later = getattr(first, name), getattr(last, name)
        return None if earlier is None or later is None else later - earlier

    taken, control = difference("taken"), difference("control_taken")
    if taken is None:
        return sent
    missing = sent - (taken - (_CONTROL_MOST if control is None else control))
    return max(missing, 0) + (difference("overrun") or 0) + (difference("table_full") or 0)


def _named(terms: Sequence[FunctionTerms], pair: int) -> str:
    return f"function {terms[pair - 1].function} of pair {pair}"
