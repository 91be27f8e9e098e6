# SPDX-License-Identifier: BSD-3-Clause
"""The figures of searches as texts and as columns of reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.case_names import number, short
from pytest_icbench.display.frame_rates import CPU_LEGEND, rate_and_metric, rate_mark, rate_ways, rate_with_unit
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.kind import Kind
from pytest_icbench.model.figures import Search
from pytest_icbench.model.measurement import Result


def bounds(result: Result) -> str:
    """Returns the relevant bounds of a search in Mpps; empty if none is proven, and for other results.

    RFC 9971 requires the lower bound in every report. An upper bound that is not the device's is left out.
    """
    found = result.searched
    lower, upper = number(result, found.search_lower_pps), number(result, found.search_upper_pps)
    if lower is None:
        return ""
    if upper is None or found.throughput_pps is None or found.throughput_pps.high is None:
        return f"≥ {short(lower / 1e6)}"
    return f"{short(lower / 1e6)} to {short(upper / 1e6)}"


def _relevant_bounds(result: Result) -> str:
    """Returns the relevant bounds as a sentence, including an upper bound that is not the device's."""
    found = result.searched
    lower, upper = number(result, found.search_lower_pps), number(result, found.search_upper_pps)
    if lower is None and upper is None:
        return ""
    ends = [
        f"no {name} bound proven" if value is None else f"{name} {short(value / 1e6)} Mpps"
        for name, value in (("lower", lower), ("upper", upper))
    ]
    return f"{', '.join(ends)} (offered load over all pairs, RFC 9971)"


def _evidence(result: Result) -> str:
    return (result.searched.search and result.searched.search.evidence) or ""


def facts(result: Result) -> list[tuple[str, str]]:
    """Returns names and texts of the facts that only searches have."""
    return [("relevant bounds", _relevant_bounds(result)), ("search", _evidence(result))]


def remarks(result: Result) -> list[str]:
    """Returns the remarks below tables; empty texts are none."""
    return [_evidence(result) if result.is_number else ""]


COLUMNS = (
    Column("rate", "", rate_with_unit, In.LINE),
    Column("interval", "", bounds, In.LINE),
    Column("bounds", "", bounds, In.THROUGHPUT, main=True),
)


SEARCH = Kind(
    figures=Search,
    columns=COLUMNS,
    value=rate_and_metric,
    shown=In.THROUGHPUT,
    titles={},
    mark=rate_mark,
    legend=((bounds, "bounds: relevant lower and upper bound, offered loads in Mpps (RFC 9971)"), CPU_LEGEND),
    remarks=remarks,
    facts=facts,
    ways=rate_ways,
)
