# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of measurement in reports. A new kind is a folder, and a row here and in ``runs``. Pure."""

from __future__ import annotations

from pytest_icbench.kinds.application.application_columns import APPLICATION
from pytest_icbench.kinds.kind import Kind
from pytest_icbench.kinds.latency.latency_columns import LATENCY
from pytest_icbench.kinds.search.search_columns import SEARCH
from pytest_icbench.kinds.startup.startup_columns import STARTUP
from pytest_icbench.kinds.throughput.throughput_columns import THROUGHPUT
from pytest_icbench.model.measurement import Result

KINDS = (THROUGHPUT, SEARCH, LATENCY, APPLICATION, STARTUP)


def kind_of(result: Result) -> Kind:
    """Returns the kind of a result."""
    return next(kind for kind in KINDS if kind.figures is type(result.figures))
