# SPDX-License-Identifier: BSD-3-Clause
"""Checks the ACL-dropped flows of a launch: none of their frames passed, and the functions counted each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionCounters, FunctionTerms
from pytest_icbench.wording import counted

#: Control frames that a side sends at most: its end mark, and two more of it; where both send, an announcement, too.
_CONTROL_MOST = 4

Couples = Sequence[tuple[ProcessOutput, ProcessOutput]]


def fault(
    case: Case, terms: Sequence[FunctionTerms], couples: Couples, read: Sequence[Sequence[FunctionCounters]]
) -> str | None:
    """Returns a sentence if a function let an ACL-dropped frame pass, or miscounted them.

    ``read``: the functions' counters before and after the launch; empty if they were not read.
    """
    if not case.denies_flows:
        return None
    sentence = passed(terms, couples)
    return miscounted(terms, couples, read[0], read[-1]) if sentence is None and read else sentence


def passed(terms: Sequence[FunctionTerms], couples: Couples) -> str | None:
    """Returns a sentence if a frame of an ACL-dropped flow arrived; None if not.

    Args:
        terms: of the function of each pair.
        couples: sender and receiver of each pair, in each direction.
    """
    for _, receiver in couples:
        totals = receiver.summary.received if receiver.summary else None
        if totals and totals.acl_drops_passed:
            return (
                f"{_named(terms, receiver.pair)}: {counted(totals.acl_drops_passed, 'frame')} of flows that it has"
                f" to deny"
                f" arrived at {receiver.name}"
            )
    return None


def miscounted(
    terms: Sequence[FunctionTerms],
    couples: Couples,
    before: Sequence[FunctionCounters],
    after: Sequence[FunctionCounters],
) -> str | None:
    """Returns a sentence if functions counted more ACL-dropped frames than were sent to them, or did not count some of
    them.

    Frames may be lost on the way to a function: of each side at most those that the function did not take in.
    ``before`` and ``after``: the functions' counters before and after the launch; functions that count none are not
    judged.
    """
    for pair in dict.fromkeys(sender.pair for sender, _ in couples):
        sent = [one.summary.sent for one, _ in couples if one.pair == pair and one.summary and one.summary.sent]
        row = [
            (first, last)
            for first, last in zip(before, after, strict=True)
            if last.pair == pair and first.acl_drops is not None and last.acl_drops is not None
        ]
        if not sent or not row or not any(totals.acl_drops for totals in sent):
            continue
        acl_drops = sum(totals.acl_drops for totals in sent)
        seen = sum((last.acl_drops or 0) - (first.acl_drops or 0) for first, last in row)
        ways = (("taken", "control_taken"), ("taken_back", None))
        astray = sum(
            min(_astray(*row[0], totals.sequences, *way), totals.acl_drops)
            for way, totals in zip(ways, sent, strict=False)
        )
        if seen > acl_drops or acl_drops - seen > astray:
            unseen = f", and at most {astray:,} of them did not get as far" if seen < acl_drops else ""
            return (
                f"{_named(terms, pair)}: it counted {seen:,} ACL-dropped frames, and {acl_drops:,} were sent to"
                f" it{unseen}"
            )
    return None


def _astray(first: FunctionCounters, last: FunctionCounters, sent: int, came: str, control: str | None) -> int:
    """Returns how many frames of a side, at most, were lost before a function could look whether to deny them.

    Args:
        came: the counter of what came in from that side.
        control: the counter of the control frames among these; None if there is none.
    """

    def difference(name: str) -> int | None:
        earlier, later = getattr(first, name), getattr(last, name)
        return None if earlier is None or later is None else later - earlier

    taken, reported = difference(came), None if control is None else difference(control)
    if taken is None:
        return sent
    missing = sent - (taken - (_CONTROL_MOST if reported is None else reported))
    return max(missing, 0) + (difference("overrun") or 0) + (difference("table_full") or 0)


def _named(terms: Sequence[FunctionTerms], pair: int) -> str:
    return f"function {terms[pair - 1].function} of pair {pair}"
