# SPDX-License-Identifier: BSD-3-Clause
"""The columns of reports: the tables of the terminal, the tables in Markdown and the rows of the page. Pure.

The case is the first column of every report. It is not in this table, since each report abbreviates it differently.
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_icbench.display.case_names import limit, main_figure, main_unit, number
from pytest_icbench.display.frame_rates import cpu_used, mean_frame, rate
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.registry import KINDS, kind_of
from pytest_icbench.kinds.search.search_columns import bounds
from pytest_icbench.kinds.throughput.throughput_columns import train
from pytest_icbench.model import fitness
from pytest_icbench.model.measurement import CYCLES, Result
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report import remarks
from pytest_icbench.report.overview import figure_text
from pytest_icbench.report.plain import plain_ratio
from pytest_icbench.report.value_changes import Change, change_of
from pytest_icbench.wording import percent, printable, signed_percent


def columns(where: In) -> list[Column]:
    """Returns the columns of a report in their order."""
    return [column for column in COLUMNS if where in column.shown]


def gbps(result: Result) -> str:
    """Returns the rate in Gbit/s."""
    gbps = number(result, result.frames.throughput_gbps)
    return "" if gbps is None else f"{gbps:.2f}" if gbps >= 1 else f"{gbps:.4f}"


def loss(result: Result) -> str:
    """Returns the lost share of frames in percent."""
    loss = number(result, result.frames.frame_loss_ratio)
    return "" if loss is None else f"{loss * 100:.2f}"


def notable_loss(result: Result) -> str:
    """Returns the lost share of frames with its sign; empty if none was lost."""
    loss = number(result, result.frames.frame_loss_ratio)
    return "" if not loss else f"{loss:.2%}" if loss >= 5e-5 else "under 0.01%"


def _lost(result: Result) -> str:
    """Returns the lost share of frames; flat out, where full rings lose some, from half a percent on."""
    few = result.metric == "frmol" and (result.frames.frame_loss_ratio or 0.0) < 0.005
    return "" if few else notable_loss(result)


def ratio(result: Result) -> str:
    """Returns the ratio to the reference link; empty for a path with a function, which has ``to_plain``."""
    ratio = None if result.point.function else number(result, result.ratio_to_reference)
    return "" if ratio is None else f"{ratio:.2f}"


def to_plain(result: Result) -> str:
    """Returns the ratio to the same path without its network function."""
    ratio = plain_ratio(result)
    return "" if ratio is None else f"{ratio:.2f}"


def _to_plain_with_interval(result: Result) -> str:
    ratio = plain_ratio(result)
    if ratio is None or ratio.low is None or ratio.high is None:
        return to_plain(result)
    return f"{ratio:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"


def of_plain(result: Result) -> str:
    """Returns the share that the function leaves: ``0.54 (0.5 to 0.58) of the path without the function``."""
    ratio = _to_plain_with_interval(result)
    return ratio and f"{ratio} of the path without the function"


def imbalance(result: Result) -> str:
    """Returns the frames of the busiest worker over the mean of all workers; empty if unknown."""
    ratio = number(result, result.frames.core_imbalance)
    return "" if ratio is None else f"{ratio:.2f}"


def shown_verdict(result: Result) -> str | None:
    """Returns the verdict; None without one, and for NO_BASELINE if no baseline was named."""
    return None if result.verdict == Verdict.NO_BASELINE and result.baseline is None else result.verdict


def verdict(result: Result) -> str:
    """Returns the verdict, with the reason if it is INVALID."""
    reason = f" {result.reason}" if not result.is_number and result.reason else ""
    return printable(f"{shown_verdict(result) or '-'}{reason}")


def judged(result: Result) -> str:
    """Returns the verdict, and whether it is waived."""
    return f"{shown_verdict(result) or '-'}{', waived' if result.waiver else ''}"


def _figure(result: Result) -> str:
    """Returns the main value with its unit and metric."""
    known = main_figure(result) is not None or (result.is_number and train(result))
    return kind_of(result).value(result) if known else ""


def _figure_and_ratio(result: Result) -> str:
    """Returns the main value, and for a path with a function its share of the plain path."""
    return ", ".join(filter(None, (_figure(result), of_plain(result))))


def _interval_of_figure(result: Result) -> str:
    """Returns the interval of the main value; for a searched rate its relevant bounds."""
    main = main_figure(result)
    if main is None:
        return ""
    if result.figures.BRACKETED:
        return f"bounds {bounds(result)}" if bounds(result) else ""
    if main.low is None or main.high is None:
        return ""
    factor, shown = main_unit(result)[1], kind_of(result).short
    return f"{'≥ ' if result.at_least else ''}{shown(main.low * factor)} to {shown(main.high * factor)}"


def _change(result: Result) -> str:
    """Returns the change with its interval against the base, the baseline or the previous run."""
    change = change_of(result)
    return "" if change is None else change.text + _of_cycles(change)


def _of_cycles(change: Change) -> str:
    """Returns the word for a change of the switch's cycles a frame, which are better when lower."""
    return " cycles" if change.name == CYCLES and change.text else ""


def _bare_change(result: Result) -> str:
    """Returns the change without its interval."""
    change = change_of(result)
    return "" if change is None or change.ratio is None else f"{signed_percent(change.ratio)} %{_of_cycles(change)}"


def _change_and_values(result: Result) -> str:
    """Returns the change with its interval, and both values."""
    change = change_of(result)
    return "" if change is None else ", ".join(filter(None, (change.text, change.text and change.values)))


def _line_loss(result: Result) -> str:
    loss = number(result, result.frames.frame_loss_ratio)
    return "" if loss is None else f"loss {percent(loss)}" if loss else "no loss"


def _line_change(result: Result) -> str:
    """Returns the change and its reference: ``-1.2 % vs main``."""
    against = "base" if result.side_by_side is not None else result.baseline
    change = _bare_change(result)
    return change and f"{change} vs {against}"


def _figures_with_metric(result: Result) -> str:
    figures = figure_text(result)
    return figures and f"{figures} {result.metric if result.figures.SAYS_METRIC else ''}"


def _limit_of_rate(result: Result) -> str:
    return limit(result) if result.figures.HAS_LIMIT else ""


def _disturbed(result: Result) -> str:
    return fitness.share(result) if remarks.disturbance(result) else ""


def _own(name: str) -> Callable[[Result], str]:
    """Returns the text of a column of lines that each kind has itself."""

    def text(result: Result) -> str:
        own = (column for column in kind_of(result).columns if column.name == name and column.shown == In.LINE)
        return next((column.text(result) for column in own), "")

    return text


#: Columns of lines that have one place for all kinds.
_ALIGNED = ("rate", "interval", "p99")
_BOTH = In.THROUGHPUT | In.LATENCY
_ALL = _BOTH | In.APPLICATION | In.STARTUP

#: All columns in their order.
COLUMNS = (
    Column("rate", "", _own("rate"), In.LINE),
    Column("mean frame", "", mean_frame, In.LINE, phrase="frames of {text} B on average"),
    *(column for kind in KINDS for column in kind.columns if column.shown != In.LINE or column.name not in _ALIGNED),
    Column("interval", "", _own("interval"), In.LINE),
    Column("p99", "µs", _own("p99"), In.LINE, phrase="p99 {text} µs"),
    Column("loss", "", _line_loss, In.LINE),
    Column("Mpps received", "", rate, In.LATENCY | In.MORE),
    Column("mean frame", "B", mean_frame, _BOTH | In.MORE),
    Column("Gbit/s", "", gbps, In.THROUGHPUT | In.MORE),
    Column("value", "", _figure_and_ratio, In.MARKDOWN),
    Column("interval", "", _interval_of_figure, In.MARKDOWN),
    Column("against the baseline{or_base}", "", _change, In.MARKDOWN),
    Column("values", "", _figures_with_metric, In.PAGE),
    Column("mean frame", "", mean_frame, In.PAGE, phrase="frames of {text} B on average"),
    Column("train", "", train, In.THROUGHPUT | In.PAGE, phrase="{text} frames back to back"),
    Column("loss", "%", loss, _BOTH | In.MORE),
    Column("lost", "", _lost, _BOTH),
    Column("loss", "", notable_loss, In.PAGE, phrase="{text} lost"),
    Column("loss events", "", lambda result: remarks.describe_losses(result, 0) or "", In.PAGE),
    Column("ratio", "", ratio, _ALL),
    Column("CPU", "%", cpu_used, _BOTH | In.PAGE | In.LINE, phrase="endpoints use {text} % of a CPU"),
    Column("imbalance", "", imbalance, _BOTH | In.PAGE | In.LINE, phrase="busiest core {text} of the mean"),
    Column("of plain", "", to_plain, _ALL),
    Column("of plain", "", of_plain, In.PAGE),
    Column("change", "", _bare_change, _ALL),
    Column("change", "", _change_and_values, In.PAGE, phrase="changed by {text}"),
    Column("limit by", "", _limit_of_rate, _ALL | In.MARKDOWN, number=False),
    Column("limit by", "", _limit_of_rate, In.PAGE, phrase="limited by {text}"),
    Column("disturbed", "", _disturbed, In.PAGE, phrase="disturbed: {text}"),
    Column("limit", "", _limit_of_rate, In.LINE),
    Column("of plain", "", to_plain, In.LINE, phrase="{text} of plain"),
    Column("verdict", "", verdict, _ALL | In.LINE, always=_ALL, number=False),
    Column("change", "", _line_change, In.LINE),
    Column("disturbed", "", _disturbed, In.LINE, phrase="disturbed: {text}"),
    Column("verdict", "", judged, In.MARKDOWN),
    Column("reason", "", lambda result: (result.reason if shown_verdict(result) else "") or "", In.PAGE),
)
