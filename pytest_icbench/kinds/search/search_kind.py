# SPDX-License-Identifier: BSD-3-Clause
"""Searches in reports: they share the tables and the charts of rates. Pure."""

from __future__ import annotations

from pytest_icbench.display.frame_rates import rate_and_metric, rate_mark, rate_ways
from pytest_icbench.display.table import In
from pytest_icbench.kinds.kind import Kind
from pytest_icbench.kinds.search import search_columns as search
from pytest_icbench.model.figures import Search

SEARCH = Kind(
    figures=Search,
    columns=search.COLUMNS,
    value=rate_and_metric,
    shown=In.THROUGHPUT,
    titles={},
    mark=rate_mark,
    legend=((search.bounds, "bounds: relevant lower and upper bound, offered loads in Mpps (RFC 9971)"),),
    remarks=search.remarks,
    facts=search.facts,
    ways=rate_ways,
)
