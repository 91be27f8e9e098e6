# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a figure against the sessions that a baseline keeps, and against the control beside them. Pure.

Unchanged software has another level in each session. So a change is held against how far the baseline's sessions lie
apart (``stats.sessions``), and so is its change against the reference link that was launched beside it (the control).
What moved both is the host, and no verdict about the software: ``host-changed``. A link of another kind, which shares
no code with the path, is asked last. No interval of medians is narrower than that of the path's launches in the new
session. What the control's launches leave unknown is in how far the sessions lie apart, of which each has as many: it
widens nothing once more, or a control with a few odd launches would hide what the path shows to one per cent.

Two levels of confidence. A *suspect* is worse than the margin allows at 95 %, by itself and against the control; by
itself alone where the control is less steady than the figure over many sessions, and neither it nor the cases of other
switches changed. The surely worse is a suspect, too, while the host may be why. A second look, beside controls measured
anew, *accuses* a suspect only if it is that again, and surely worse than before by one of both (against the control,
where it or the other cases changed): at a level that all figures of a session share, such that at most ``ERROR_RATE``
of the sessions accuse anything of unchanged software (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from pytest_icbench.gate.best_launches import BEST, Deciding, by_medians, in_words, steadier
from pytest_icbench.gate.entry import Entry
from pytest_icbench.gate.margins import COMPARED, Allowed
from pytest_icbench.gate.other_cases import OtherCase, usual
from pytest_icbench.gate.session_values import (
    FEWEST_NORMAL,
    MOST_SESSIONS,
    SessionValues,
    against_control,
)
from pytest_icbench.gate.sides import Of, Sessions, Side, over_launches, side_of
from pytest_icbench.model.verdict import GOOD, Verdict
from pytest_icbench.stats.noninferiority import DEFAULT_ALLOWANCE, Change, Figure, Margin, ratio_of
from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate
from pytest_icbench.stats.sessions import arm, sessions_until_told
from pytest_icbench.wording import percent

#: The share of sessions that accuse anything of unchanged software, at most.
ERROR_RATE = 0.01
#: The rate for which the level is chosen: with Student's distribution of three degrees it is fifteen times as much
#: (``benchmarks/validation``).
NOMINAL_RATE = 0.0006
#: A search counts for as many figures: a session of it is one value, nearer to a normal distribution by no noise of
#: launches. Set by simulation, such that ``ERROR_RATE`` holds with Student's three degrees too.
SEARCH_SHARES = 4
#: The fewest sessions by which a figure stands without its control.
FEWEST_ALONE = 10
#: How surely what is normal on a host lies within what is taken for it.
NORMAL = 0.99
#: The greatest loss of a rate that passes as normal on a host: sessions further apart say nothing of a change. Of a
#: time it is the rise that makes up for it, 43 %.
MOST_NORMAL = 0.3
#: The greatest change, as a factor, of which a gate says that it would find it.
MOST_FOUND = 2.0
#: The reason of an INCONCLUSIVE verdict.
HOST_CHANGED = "host-changed"
SUSPECT = "a suspect, and nothing is accused before a second look"


def strict_confidence(shares: int, figure: Figure | None = None) -> float:
    """Returns the confidence at which a figure is accused.

    Args:
        shares: the number of tests of a session that share its error rate.
        figure: the figure; that of a search has one launch.
    """
    if figure is not None and len(figure.launches) == 1:
        shares *= SEARCH_SHARES
    return 1 - 2 * NOMINAL_RATE / max(shares, 1)


@dataclass(frozen=True, slots=True)
class SessionVerdict:
    """The verdict on a figure over sessions.

    Attributes:
        ratio: now over the baseline with the interval of 95 % over sessions; over launches with a single session.
        against: the same against the control; None without one.
        control: the control's own change.
        sessions: the number of sessions at the baseline's newest level.
        more_sessions: about how many more would tell; None where that is not the reason, or none would.
        finds: the share of worsening that is accused in half of all sessions; None with too few sessions, and where
            not even half or twice the value is.
        suspect: worse at 95 %, and to be measured again.
        by_launches: whether more launches would tell, because those of the new session make the interval wide.
        value: the new session's value that is compared: the median of its launches, or that of its best; None with a
            single session in the baseline.
        medians: the change of the medians, where the best launches decide.
    """

    verdict: Verdict
    ratio: Estimate
    note: str | None = None
    against: Estimate | None = None
    control: Estimate | None = None
    sessions: int = 1
    more_sessions: int | None = None
    finds: float | None = None
    suspect: bool = False
    by_launches: bool = False
    value: float | None = None
    medians: Estimate | None = None


def over_sessions(
    now: Entry,
    before: Entry,
    allowed: Allowed,
    shares: int,
    others: Collection[OtherCase] = (),
    *,
    first: bool,
    of_run: bool = False,
) -> SessionVerdict | None:
    """Returns the verdict on one figure; None where it has no positive value on both sides.

    Args:
        shares: the number of figures of the session that share its error rate.
        others: the session's cases of other switches.
        first: whether this is a first look, after which a suspect is measured again.
        of_run: whether ``before`` is of a run, to which no session can be added.
    """
    values, sessions = now.values, before.in_state(now.distance_ns)
    name, margin = allowed.name, allowed.margin
    figure = now.figures[name]
    medians = by_medians(values, sessions, name, over_launches(figure))
    if medians is None:
        return None
    plain = medians.sides[0]
    if plain.spread is None:
        return _of_one_session(now, before, allowed, plain, of_run=of_run)
    deciding = steadier(medians, values, sessions, name)
    confidence = strict_confidence(shares * len(deciding.sides), figure)
    own, *beside = deciding.sides
    judged = SessionVerdict(
        Verdict.INCONCLUSIVE,
        own.change(),
        against=beside[0].change() if beside else None,
        control=None if deciding.control is None else deciding.control.change(),
        sessions=len(own.levels[-1]),
        finds=_finds(deciding, margin, confidence),
        value=own.now,
        medians=plain.change() if deciding.by_best else None,
    )
    found = _judged(judged, deciding, values, sessions, allowed, confidence, others, first=first)
    return _with_medians(found, plain, margin) if deciding.by_best else found


def _judged(
    judged: SessionVerdict,
    deciding: Deciding,
    values: SessionValues,
    sessions: Sessions,
    allowed: Allowed,
    confidence: float,
    others: Collection[OtherCase],
    *,
    first: bool,
) -> SessionVerdict:
    """Returns the verdict by what decides, whose changes ``judged`` has."""
    margin, sides = allowed.margin, deciding.sides
    changes = [margin.change(side.change()) for side in sides]
    worse = changes[0] == "worse"
    usual_host = _usual(deciding.control) and (first or not others or usual(others))
    alone = worse and _may_stand_alone(deciding) and usual_host and _beyond(sides[-1].change().value, margin)
    alone = alone and (first or bool(others))
    if alone or all(change == "worse" for change in changes):
        witness = _by_witness(values, sessions, allowed, deciding.of)
        # Where the host changed, by itself everything is worse.
        telling = sides[:1] if alone else sides if usual_host else sides[-1:]
        found = _of_worse(judged, telling, margin, confidence, witness, first=first)
    else:
        found = _of_others(judged, sides, changes, allowed)
    surely = worse and sides[0].surely_worse(margin, confidence)
    return replace(found, suspect=found.suspect or (first and surely and found.verdict == Verdict.INCONCLUSIVE))


def _with_medians(found: SessionVerdict, plain: Side, margin: Margin) -> SessionVerdict:
    """Returns what the best launches tell, unless the median contradicts it."""
    median, change = margin.change(plain.change()), plain.change().value
    lost = 1 - (change if margin.better == "higher" else 1 / change)
    worse = lost > MOST_NORMAL or (median != "same" and plain.surely_worse(margin, CONFIDENCE))
    if found.verdict in GOOD and worse:
        return _with(found, note=f"{BEST} it is not worse, but by its median: {in_words(plain)}")
    if found.verdict == Verdict.REGRESSED and median == "better":
        return _with(found, note=f"{BEST} it is worse, but by its median better: {in_words(plain)}")
    if found.note is None:
        return found if found.verdict == Verdict.INCONCLUSIVE else replace(found, note=BEST)
    return replace(found, note=f"{BEST}: {found.note}")


def _usual(control: Side | None) -> bool:
    """Whether the control is where it is from session to session."""
    change = None if control is None else control.change()
    return change is not None and change.low is not None and change.high is not None and change.low <= 1 <= change.high


def _may_stand_alone(deciding: Deciding) -> bool:
    """Whether what is worse by itself need not be so at 95 % against the control, which is less steady than the figure.

    That takes many sessions, which agree better by the figure than by it against the control. The control's own moods,
    which the figure does not follow, would hide what the figure shows to one per cent. Its value must not explain the
    change all the same. The best launches of a control have hardly any moods.
    """
    own, shared = deciding.sides[0].spread, deciding.sides[-1].spread
    if own is None or shared is None or deciding.by_best:
        return False
    return own.freedom >= FEWEST_ALONE - 1 and own.deviation < shared.deviation


def _of_one_session(now: Entry, before: Entry, allowed: Allowed, plain: Side, *, of_run: bool) -> SessionVerdict:
    """Returns the verdict beside a single session, which tells nothing of how far sessions lie apart.

    It accuses nobody. It acquits if the change against the control, over launches, stays within the margin as well.
    """
    name, margin = allowed.name, allowed.margin
    new, old = now.figures[name], before.figures[name]
    over_launches = ratio_of(new, old) or plain.change()
    ratio = over_launches if old.value <= 0 else _of_values(over_launches, new.value / old.value)
    new_beside, old_beside = (
        Figure(1.0, launches=against_control(name, figure, entry.control))
        for figure, entry in ((new, now), (old, before))
    )
    against = ratio_of(new_beside, old_beside) if new_beside.launches and old_beside.launches else None
    good = ("better", "same")
    one_session = "the first run is one session" if of_run else "the baseline has one session"
    if against is not None and margin.change(ratio) in good and margin.change(against) in good:
        return SessionVerdict(Verdict.PASS, ratio, f"the control decides: {one_session}", against)
    note = f"{one_session}, which does not tell how far sessions lie apart"
    if of_run:
        note += f"; a baseline of {FEWEST_NORMAL} would (--icbench-save)"
    more = None if of_run else FEWEST_NORMAL - 1
    return SessionVerdict(Verdict.INCONCLUSIVE, ratio, note, against, more_sessions=more)


def _of_values(estimate: Estimate, ratio: float) -> Estimate:
    """Returns the ratio of the two values that are shown, with the estimate's interval, which holds it."""
    if estimate.low is None or estimate.high is None:
        return Estimate(ratio)
    return Estimate(ratio, min(estimate.low, ratio), max(estimate.high, ratio), estimate.coverage)


def _of_worse(
    judged: SessionVerdict, sides: list[Side], margin: Margin, confidence: float, witness: str | None, *, first: bool
) -> SessionVerdict:
    """Returns the verdict on what is worse at 95 %, by itself and against the control."""
    if witness is not None:
        return _with(judged, note=witness)
    if first:
        return _with(judged, note=SUSPECT, suspect=True)
    if any(side.surely_worse(margin, confidence) for side in sides):
        return _with(judged, Verdict.REGRESSED)
    note = f"worse than sessions differ, but not surely enough for {percent(ERROR_RATE)} of false alarms a session"
    return _with(judged, note=note, more_sessions=_until_told(sides, 1.0, confidence))


def _until_told(sides: list[Side], ratio: float, confidence: float) -> int | None:
    """Returns how many more sessions tell the first of the sides from a ratio; None if none would."""
    more = [
        sessions_until_told(side.spread, len(side.levels[-1]), distance, confidence, MOST_SESSIONS)
        for side in sides
        if side.spread is not None and (distance := abs(math.log(side.change().value / ratio))) > 0
    ]
    return min((count for count in more if count is not None), default=None)


def _of_others(judged: SessionVerdict, sides: list[Side], changes: list[Change], allowed: Allowed) -> SessionVerdict:
    """Returns the verdict on what is not worse, by itself or against the control."""
    margin, plain = allowed.margin, sides[0]
    alone, beside = changes[0], changes[-1]
    if "worse" in changes or (alone == "better" and beside != "better"):
        for side, change, words in zip(sides, changes, ("by itself", "against the control"), strict=False):
            if "worse" in changes and change == "open" and _beyond(side.change().value, margin):
                more = _until_told([side], margin.limit, CONFIDENCE)
                return _with(judged, note=f"{words}, it may lie within the margin", more_sessions=more)
        if alone != "better" or beside != "same":
            return _with(judged, note=_host_changed(judged))
        return _with(judged, Verdict.PASS)
    if alone != "open":
        return _with(judged, Verdict.of_outcome(alone))
    if beside in ("same", "better"):
        return _with(judged, Verdict.PASS, note="the control decides: against it, the change is within the margin")
    assert plain.spread is not None  # a single session has a verdict of its own
    sessions = len(plain.levels[-1])
    if sessions >= FEWEST_NORMAL and margin.allowance == DEFAULT_ALLOWANCE and not plain.rests_on_launches:
        normal = arm(plain.spread, sessions, NORMAL)
        low, high = math.exp(-normal), math.exp(normal)
        span = f"{low - 1:+.0%} to {high - 1:+.0%}"
        if not _beyond(judged.ratio.value, Margin(margin.better, 0.0, _worst(low, high, margin))):
            if 1 - low <= MOST_NORMAL:
                return _with(judged, Verdict.PASS, note=f"within what is normal here over {sessions} sessions, {span}")
            judged = replace(judged, note=f"what is normal here over {sessions} sessions tells nothing: {span}")
    if plain.rests_on_launches:
        return replace(judged, by_launches=True)
    distance = abs(math.log(judged.ratio.value / margin.limit))
    more = sessions_until_told(plain.spread, sessions, distance, CONFIDENCE, MOST_SESSIONS) if distance else None
    wanted = max(FEWEST_NORMAL - sessions, 0) if margin.allowance == DEFAULT_ALLOWANCE else None
    more = min((count for count in (more, wanted) if count), default=None)
    return _with(judged, note=judged.note, more_sessions=more)


def _worst(low: float, high: float, margin: Margin) -> float:
    """Returns the allowance at which the margin's limit is the worse end of what is normal."""
    return 1 - low if margin.better == "higher" else high - 1


def _beyond(ratio: float, margin: Margin) -> bool:
    """Whether a ratio lies beyond the margin's limit."""
    return ratio < margin.limit if margin.better == "higher" else ratio > margin.limit


def _host_changed(judged: SessionVerdict) -> str:
    """Returns the reason for what the control shares, or for a control that changed alone."""
    moved = "" if judged.control is None else f"the control changed by {judged.control.value - 1:+.1%}, "
    beside = "" if judged.against is None else f"{judged.against.value - 1:+.1%} against it"
    return f"{HOST_CHANGED}: {moved}this by {judged.ratio.value - 1:+.1%}, {beside}"


def _by_witness(values: SessionValues, sessions: Sessions, allowed: Allowed, of: Of) -> str | None:
    """Returns the reason of a change that something explains which shares no code with the path; None if nothing does.

    What takes no longer than it does from session to session explains nothing.
    """

    def other_link(session: SessionValues) -> float | None:
        return 1e9 / session.other_link_pps if session.other_link_pps else None

    slower = _explaining(other_link, values, sessions, allowed, of)
    if slower is None:
        return None
    link = "a frame of a link that shares no code with the path"
    return f"{HOST_CHANGED}: {link} takes {slower - 1:+.1%} longer, which explains the change"


def _explaining(witness: Of, values: SessionValues, sessions: Sessions, allowed: Allowed, of: Of) -> float | None:
    """Returns the factor by which a witness takes longer, if without it the change may be within the margin."""
    time = side_of(values, sessions, witness)
    if time is None:
        return None
    slower = time.change()
    if slower.low is not None and slower.low <= 1:
        return None

    def without(session: SessionValues) -> float | None:
        value, spent = of(session), witness(session)
        if value is None or not spent:
            return None
        return value * spent if COMPARED[allowed.name][1] == "higher" else value / spent

    side = side_of(values, sessions, without)
    if side is None or _beyond(side.change().value, allowed.margin):
        return None
    return slower.value


def finds(before: Entry, allowed: Allowed, shares: int) -> float | None:
    """Returns the share of worsening that a comparison with an entry accuses in half of all sessions.

    Returns None with fewer than two sessions at one level, and where not even ``MOST_FOUND`` times the value is told.
    The arguments are those of ``over_sessions``.
    """
    values, sessions = before.values, before.sessions
    medians = by_medians(values, sessions, allowed.name, None)
    if medians is None:
        return None
    deciding = steadier(medians, values, sessions, allowed.name)
    confidence = strict_confidence(shares * len(deciding.sides), before.figures.get(allowed.name))
    return _finds(deciding, allowed.margin, confidence)


def _finds(deciding: Deciding, margin: Margin, confidence: float) -> float | None:
    # All sides have to be beyond the limit at 95 %, and one of them surely worse than before.
    needed = deciding.sides[:1] if _may_stand_alone(deciding) else deciding.sides
    beyond = abs(math.log(margin.limit)) + max(side.reach(margin, CONFIDENCE) for side in needed)
    reach = max(beyond, min(side.reach(margin, confidence) for side in deciding.sides))
    if reach > math.log(MOST_FOUND):
        return None
    return 1 - math.exp(-reach) if margin.better == "higher" else math.exp(reach) - 1


def _with(
    judged: SessionVerdict,
    verdict: Verdict = Verdict.INCONCLUSIVE,
    note: str | None = None,
    *,
    more_sessions: int | None = None,
    suspect: bool = False,
) -> SessionVerdict:
    return replace(judged, verdict=verdict, note=note, more_sessions=more_sessions, suspect=suspect)
