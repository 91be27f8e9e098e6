# SPDX-License-Identifier: BSD-3-Clause
"""The findings of the gate, as a result keeps them. Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.wording import counted, percent, plain_name, quantity, span


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding on one figure of a measurement, against a limit or against a baseline.

    Attributes:
        name: of the result: ``throughput_pps``.
        kind: ``min`` and ``max`` are limits; ``drop`` and ``rise`` compare with a baseline, for values that are better
            when higher and when lower.
        limit: the worst value allowed, in the result's unit; of ``drop`` and ``rise`` the greatest share by which it
            may be worse, allowance included.
        source: where the limit stands: file, table and key.
        verdict: ``PASS``, ``IMPROVED``, ``REGRESSED`` or ``INCONCLUSIVE``.
        value, value_low, value_high: the value; its interval includes what the sessions differ by; without one it is
            both ends.
        at_least: the value is a lower bound, so its upper end is null, and no verdict that needs one follows.
        baseline: the baseline's name, null for a limit.
        baseline_value, baseline_value_low, baseline_value_high, measured: its value, and when it was measured (UTC).
        ratio, ratio_low, ratio_high: now over the baseline; from the launches of both where known.
        more_launches, more_s: about how many more launches, and seconds, would decide an INCONCLUSIVE one; null where
            that is not the reason or no length would do.
        note: why it does not decide, where the values do not say so, or why it is this one that decides; else null.
        sessions, more_sessions: the baseline's sessions at its newest level, and about how many more would decide; null
            where that is not the reason.
        against_control, control_change: ratio of the value against the reference link beside it, and the reference
            link's own; null without one.
        finds: worsening that such a comparison accuses in half of all sessions; null with fewer than two sessions, and
            where not even half or twice the value is.
        medians: ratio of the medians, where the best launches decide, of which value and ratio then are; else null.
        suspect: the value was worse in a first look; the second look's result stands below.
    """

    name: str
    kind: Literal["min", "max", "drop", "rise"]
    limit: float
    source: str
    verdict: Verdict
    value: float | None = None
    value_low: float | None = None
    value_high: float | None = None
    at_least: bool = False
    baseline: str | None = None
    baseline_value: float | None = None
    baseline_value_low: float | None = None
    baseline_value_high: float | None = None
    measured: str | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    more_launches: int | None = None
    more_s: float | None = None
    note: str | None = None
    sessions: int | None = None
    more_sessions: int | None = None
    against_control: Estimate | None = None
    control_change: Estimate | None = None
    finds: float | None = None
    medians: Estimate | None = None
    suspect: bool = False

    def sentence(self) -> str:
        """Returns value, interval, limit and its source; for a comparison both values and both intervals."""
        value = with_interval(self.value, self.value_low, self.value_high, self.at_least, name=self.name)
        text = f"{plain_name(self.name)}: {value}"
        if self.baseline is not None:
            base = self.baseline_value, self.baseline_value_low, self.baseline_value_high
            before = with_interval(*base, name=self.name)
            day = f" of {self.measured[:10]}" if self.measured else ""
            over = f" over {self.sessions} sessions" if self.sessions is not None and self.sessions > 1 else ""
            text += f", baseline {self.baseline}{day}{over} {before}"
            if self.ratio is not None:
                text += f", ratio {with_interval(self.ratio, self.ratio_low, self.ratio_high)}"
            if self.against_control is not None:
                beside = self.against_control
                text += f", against the control {with_interval(beside.value, beside.low, beside.high)}"
            way = "lower" if self.kind == "drop" else "higher"
            text += f", limit at most {percent(self.limit)} {way}"
        else:
            text += f", limit at {'least' if self.kind == 'min' else 'most'} {quantity(self.name, self.limit)}"
        remark = self.outlook() or self.note
        end = f" ({remark})" if remark else ""
        return f"{text} from {self.source}{end}: {self.verdict}"

    def outlook(self) -> str:
        """Returns why the finding is inconclusive, and what it takes; empty for a conclusive one."""
        if self.verdict != Verdict.INCONCLUSIVE:
            return ""
        took = span(self.more_s) if self.more_s else ""
        more = f"about {took} more" if took else ""
        if self.more_launches is not None:
            more = f"about {counted(self.more_launches, 'launch')}{f' ({took})' if took else ''} more would tell"
        if self.more_sessions is not None:
            more = f"about {counted(self.more_sessions, 'session')} more in the baseline would tell (--icbench-save)"
        return "; ".join(filter(None, (self.note, more)))


def with_interval(
    value: float | None, low: float | None, high: float | None, at_least: bool = False, *, name: str = ""
) -> str:
    """Returns a value with its interval: ``5.1M (interval 4.9M to 5.3M)``.

    Args:
        name: the name of the figure, which says the unit: times are shown in microseconds.
    """
    if at_least:
        return f"{quantity(name, value)} (at least)"
    if low is None or high is None or low == high:
        return quantity(name, value)
    return f"{quantity(name, value)} (interval {quantity(name, low)} to {quantity(name, high)})"
