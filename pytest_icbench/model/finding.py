# SPDX-License-Identifier: BSD-3-Clause
"""The findings of the gate and the comparison with a base, as a result keeps them. Facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.verdict_reasons import INCONCLUSIVE_REASONS, Reason
from pytest_icbench.wording import clock, counted, percent, plain_name, quantity

#: What a ratio's interval is made of.
Unit = Literal["launch", "pair", "session"]

#: The names of main figures in sentences on a comparison. A limit keeps the name that its key has.
_MEANT = MappingProxyType({"cycles_per_packet": "cycles a frame", "rtt_p50_ns": "median round trip"})


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding on one figure of a measurement, against a limit or against a baseline.

    Attributes:
        name: of the result: ``throughput_pps``.
        kind: ``min`` and ``max`` are limits; ``drop`` and ``rise`` compare with a baseline, for values that are better
            when higher and when lower.
        limit: the worst value allowed, in the result's unit; of ``drop`` and ``rise`` the share by which it may be
            worse.
        source: where the limit stands: file, table and key.
        verdict: ``PASS``, ``IMPROVED``, ``REGRESSED`` or ``INCONCLUSIVE``.
        value, value_low, value_high: the value and its interval; without one it is both ends.
        at_least: the value is a lower bound, so its upper end is null.
        baseline: the baseline's name, null for a limit.
        baseline_value, measured: its value, and when it was measured (UTC).
        ratio, ratio_low, ratio_high: now over the baseline with its interval of 95 %.
        relative_to_control: the same of the value over that of the reference link; null without one.
        unit, units: what the interval is made of (``launch``, ``pair``, ``session``), and their number; or null.
        finds: the least loss that such a comparison finds nine times of ten; null if it is not known.
        weak: a loss of 10 % is found in less than half of such sessions.
        reason: why it is INCONCLUSIVE (``few``, ``spread``, ``state``, ``host``, ``bound``); else null.
        note: a more exact sentence on the reason, or why it is this figure that decides; else null.
        more, more_s: about how many more units, and seconds, would decide; null where no number would.
        retest: the value was worse, so the case was measured again; further findings are of that measurement.
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
    measured: str | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    relative_to_control: Estimate | None = None
    unit: Unit | None = None
    units: int | None = None
    finds: float | None = None
    weak: bool = False
    reason: Reason | None = None
    note: str | None = None
    more: int | None = None
    more_s: float | None = None
    retest: bool = False

    def sentence(self) -> str:
        """Returns what was found and why, without the verdict: ``4.2 Mpps is 9.8 % lower than main (…)``."""
        if self.value is None:
            return f"{plain_name(self.name)} has no value{self._end()}"
        at_least = " (at least)" if self.at_least else ""
        value = _amount(self.name, self.value) + at_least
        if self.baseline is None:
            return f"{value}{self._beside_limit()}{self._end()}"
        if self.name in _MEANT:
            value = f"{_MEANT[self.name]} {_amount('', self.value, self.name)}{at_least}"
        return f"{value if self.ratio is None else self._compared(value)}{self._end()}"

    def _compared(self, value: str) -> str:
        """Returns the change; the less is decided, the fewer words it has beside the interval."""
        assert self.ratio is not None
        change = _change(self.ratio)
        units = "" if self.units is None else counted(self.units, self.unit or "launch")
        if self.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
            return f"{value} is {change} than {self._other()}{self._interval(units)}"
        named = "" if self.name == "throughput_pps" else f"{_MEANT.get(self.name, plain_name(self.name))} "
        if self.verdict == Verdict.PASS:
            return f"{named}{change} than {self._other()}{self._interval('' if self.note else units)}"
        return f"{named}{change}{self._interval()}"

    def _other(self) -> str:
        return "base" if self.unit == "pair" else str(self.baseline)

    def detail(self) -> str:
        """Returns the numbers behind the sentence, and where its limit stands."""
        text = f"{plain_name(self.name)}: {self.verdict}: {self.sentence()}"
        parts = []
        if self.baseline is not None and self.value is not None:
            ends = "" if self.at_least else self._ends()
            parts.append(f"value {_amount('', self.value, self.name)}{ends}")
        if self.baseline_value is not None:
            day = f" of {self.measured[:10]}" if self.measured else ""
            other = "base" if self.unit == "pair" else f"baseline {self.baseline}{day}"
            parts.append(f"{other} {_amount('', self.baseline_value, self.name)}")
        if (beside := self.relative_to_control) is not None:
            parts.append(f"relative to the reference link {_change(beside.value)}{_ends(beside)}")
        parts.append(f"limit from {self.source}")
        return "; ".join((text, *parts))

    def outlook(self) -> str:
        """Returns why the finding is inconclusive, and what would decide it; empty for a conclusive one."""
        if self.verdict != Verdict.INCONCLUSIVE:
            return ""
        units = _plural(self.unit or "launch")
        why = self.note or (INCONCLUSIVE_REASONS[self.reason].format(units=units) if self.reason else "")
        return "; ".join(filter(None, (why, self.remedy())))

    def remedy(self) -> str:
        """Returns how much more measuring would decide; empty if none would, or if it is not known."""
        took = f" ({clock(self.more_s)})" if self.more_s else ""
        if self.more is None:
            return f"about {clock(self.more_s)} more would tell" if self.more_s else ""
        save = " (--icbench-save)" if self.unit == "session" else ""
        unit = self.unit or "launch"
        return f"about {self.more:,} more {unit if self.more == 1 else _plural(unit)}{took} would tell{save}"

    def _end(self) -> str:
        """Returns the end of the sentence: what was allowed, what would have been found, or why nothing is known."""
        if self.verdict == Verdict.INCONCLUSIVE:
            outlook = self.outlook()
            return f": {outlook}" if outlook else ""
        note = f"; {self.note}" if self.note else ""
        if self.baseline is None:
            return note
        if self.verdict == Verdict.PASS and self.finds is not None:
            return f"{note}; a loss of {percent(self.finds)} or more would have been found"
        return f"{note}; allowed: {percent(self.limit)}" if self.verdict == Verdict.REGRESSED else note

    def _beside_limit(self) -> str:
        """Returns how the value lies to its limit, and its interval."""
        limit = _amount("", self.limit, self.name)
        if self.verdict == Verdict.INCONCLUSIVE:
            return f" is too near {limit}{self._ends()}" if self.reason == "spread" else f" (limit {limit})"
        word = "below" if self.kind == "min" else "above"
        return f" is {word if self.verdict == Verdict.REGRESSED else f'not {word}'} {limit}{self._ends()}"

    def _ends(self) -> str:
        low, high = self.value_low, self.value_high
        if low is None or high is None or low == high:
            return ""
        return f" ({_amount('', low, self.name)} to {_amount('', high, self.name)})"

    def _interval(self, units: str = "") -> str:
        return "" if self.ratio is None else _ends(Estimate(self.ratio, self.ratio_low, self.ratio_high), units)


def _plural(unit: Unit) -> str:
    return counted(2, unit).partition(" ")[2]


def _change(ratio: float) -> str:
    return f"{percent(ratio - 1)} {'lower' if ratio < 1 else 'higher'}"


def _ends(ratio: Estimate, units: str = "") -> str:
    """Returns a ratio's interval in percent of the change that its value states: `` (7.9 to 11.6 %, 24 pairs)``."""
    if ratio.low is None or ratio.high is None:
        return f" ({units})" if units else ""
    low, high = (1 - ratio.high, 1 - ratio.low) if ratio.value < 1 else (ratio.low - 1, ratio.high - 1)
    return f" ({', '.join(filter(None, (f'{100 * low:.3g} to {100 * high:.3g} %', units)))})"


def _amount(shown: str, value: float | None, name: str = "") -> str:
    """Returns a value with its unit: ``4.23 Mpps``, ``rtt_p50 21 µs``. ``shown`` is the name if it is to be said."""
    name = name or shown
    if not name.endswith("_pps"):
        return f"{plain_name(shown)} {quantity(name, value)}".lstrip()
    number = quantity(name, value)
    text = f"{number[:-1]} {number[-1]}pps" if number[-1:] in "kM" else f"{number} pps"
    return text if shown in ("", "throughput_pps") else f"{shown} {text}"


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The comparison of a candidate with its base, in pairs of launches on pairs of rigs built anew.

    Attributes:
        base: id of the case measured beside it.
        figure: what is compared: ``throughput_pps``, ``cycles_per_packet`` or ``rtt_p50_ns``.
        decision: as in the result.
        reason: why it is INCONCLUSIVE: ``few``, ``spread``, ``state`` or ``bound``; else null.
        ratio, ratio_low, ratio_high: candidate over base; its interval of 95 %.
        finds: loss that such a comparison finds nine times of ten, as a share; null with too few pairs.
        weak: a loss of 10 % is found in less than half of such comparisons.
        base_value: the base's figure, median over these launches.
        allowance: share by which the candidate may be worse.
        pairs: pairs of launches that decide.
        dropped: pairs whose launches met the host in two states; they decide nothing.
        more_pairs: about how many more would decide; null where that is not the reason or 1,000 would not do.
        cases: comparisons of the session.
        error_rate: greatest probability that any of them is REGRESSED though nothing changed; the same for IMPROVED.
        note: why it is this figure that decides; else null.
    """

    base: str
    figure: str
    decision: Verdict
    reason: Reason | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    finds: float | None
    weak: bool
    base_value: float
    allowance: float
    pairs: int
    dropped: int
    more_pairs: int | None
    cases: int
    error_rate: float
    note: str | None = None
