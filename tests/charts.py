# SPDX-License-Identifier: BSD-3-Clause
"""Reads charts as the page does, for tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_icbench.display.chart import Figure


def values(figure: Figure) -> list[dict[str, Any]]:
    """Returns the chart's data as the page gives them to Vega."""
    return [dict(zip((column.name for column in figure.columns), row, strict=True)) for row in figure.rows]


def complete(figure: Figure) -> dict[str, Any]:
    """Returns the specification with data and sizes, without the page's scale."""
    spec = json.loads(json.dumps(figure.spec).replace('"@scale"', '"name"').replace("@kind", ""))
    return {**spec, "data": {"values": values(figure)}, "width": 400, "height": figure.height}


def compiled(figure: Figure) -> dict[str, Any]:
    """Returns the chart as Vega. Fails if its specification does not compile. Skips the test without the library."""
    compiler = pytest.importorskip("vl_convert")
    vega: dict[str, Any] = compiler.vegalite_to_vega(complete(figure))
    return vega
