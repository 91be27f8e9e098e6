# SPDX-License-Identifier: BSD-3-Clause
"""What the gate found, as a result keeps it: facts only, pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_icbench.model.verdict import Verdict
from pytest_icbench.wording import percent, show, span


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit, or one figure of a baseline, against one measurement.

    Attributes:
        name: of the result.
        kind: ``min`` and ``max`` hold against a limit, ``drop`` and ``rise`` against a baseline.
        limit: the worst value allowed, in the result's unit; of ``drop`` and ``rise`` the greatest share by which the
            figure may be worse than the baseline's, allowance included.
        source: where it is written: file, table and key.
        value, value_low, value_high: the figure and its interval; equal for a result without one. With ``at_least`` the
            upper end is None.
        at_least: the figure is a lower bound: what limited it was not the switch.
        baseline: name of the baseline. baseline_value, …: its figure. measured: when, in UTC.
        ratio, ratio_low, ratio_high: now over the baseline's.
        more_launches, more_s: by about how many launches, and seconds, it would have to be longer to be told; None
            where that is not the reason, or where no length would do.
        note: why it does not tell, where the figures do not say it.
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

    def sentence(self) -> str:
        """Value, interval, limit and its source; of a comparison both values and both intervals."""
        what = f"{self.name}: {with_interval(self.value, self.value_low, self.value_high, self.at_least)}"
        if self.baseline is not None:
            before = with_interval(self.baseline_value, self.baseline_value_low, self.baseline_value_high)
            day = f" of {self.measured[:10]}" if self.measured else ""
            what += f", baseline {self.baseline}{day} {before}"
            if self.ratio is not None:
                what += f", ratio {with_interval(self.ratio, self.ratio_low, self.ratio_high)}"
            way = "lower" if self.kind == "drop" else "higher"
            what += f", limit at most {percent(self.limit)} {way}"
        else:
            what += f", limit at {'least' if self.kind == 'min' else 'most'} {show(self.limit)}"
        end = f" ({self.outlook()})" if self.outlook() else ""
        return f"{what} from {self.source}{end}: {self.verdict}"

    def outlook(self) -> str:
        """Why it does not tell, and what would; empty where it does."""
        if self.verdict != Verdict.INCONCLUSIVE:
            return ""
        took = span(self.more_s) if self.more_s else ""
        more = f"about {took} more" if took else ""
        if self.more_launches is not None:
            more = f"about {self.more_launches} launches{f' ({took})' if took else ''} more would tell"
        return "; ".join(filter(None, (self.note, more)))


def with_interval(value: float | None, low: float | None, high: float | None, at_least: bool = False) -> str:
    """``5.1M (interval 4.9M to 5.3M)``."""
    if at_least:
        return f"{show(value)} (at least)"
    if low is None or high is None or low == high:
        return show(value)
    return f"{show(value)} (interval {show(low)} to {show(high)})"
