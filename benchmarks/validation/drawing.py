# SPDX-License-Identifier: BSD-3-Clause
"""Figures as SVG files: one look for all, and the same file from the same data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from validation.model import Claim, Record

#: Colours that people with any colour vision tell apart (Okabe and Ito): first, second, ... series.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: Bounds and limits.
LIMIT: dict[str, Any] = {"color": "#555555", "linestyle": "--", "linewidth": 1}
_STYLE: dict[str, Any] = {
    "figure.figsize": (8, 3.6),
    "font.size": 9,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "icbench",
}


def figure_names(name: str, claim: Claim) -> Iterable[str]:
    """File names of a claim's figures."""
    return [f"{name}-{figure}.svg" for figure in claim.FIGURES]


def draw(record: Record, claim: Claim, directory: Path) -> None:
    """Writes the claim's figures into the directory."""
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure

    style: Any = {**_STYLE, "axes.prop_cycle": cycler(color=COLOURS)}
    with mpl.rc_context(style):
        for name in claim.FIGURES:
            figure = Figure(layout="constrained")
            claim.draw(name, figure, record.data)
            file = directory / f"{record.claim}-{name}.svg"
            figure.savefig(file, metadata={"Date": None, "Creator": None})
            # matplotlib leaves blanks at line ends.
            file.write_text("\n".join(line.rstrip() for line in file.read_text().split("\n")))
