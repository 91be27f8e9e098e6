# SPDX-License-Identifier: BSD-3-Clause
"""Every published chart A1 to A10, B2, B3, C4, E5 and E7 on one page, drawn from made-up results of that shape.

``python benchmarks/report_shapes.py [FILE]`` writes the page (``shapes.html``): a list of what each chart shows, and
the charts of each experiment side by side. No host and no root.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from pytest_icbench.display.chart import Figure
from pytest_icbench.report.figure.registry import Content, section_charts
from pytest_icbench.report.html import parts
from pytest_icbench.report.html.compare import PlainSection, plain_page
from pytest_icbench.report.html.parts import text
from tests.shapes import SHAPES, Shape

#: Sections that the publications have no chart of.
_OURS = ("launches", "percentiles", "heat")


def charts_of(shape: Shape) -> list[Figure]:
    """Returns the charts that the report draws of an experiment, without those of the tool's own sections."""
    sections = section_charts(Content.of(shape.results()))
    return [chart for section, charts in sections if section.name not in _OURS for chart in charts]


def page() -> str:
    """Returns the page."""
    contents = "".join(
        f'<li><a href="#{shape.row}">{shape.row}</a> {text(shape.source)}: {text(shape.shows)}</li>' for shape in SHAPES
    )
    made_up = "<p>The shapes follow the publications, the numbers are made up: nothing here was measured.</p>"
    sections = [
        PlainSection(
            shape.row, f"{shape.row}: {shape.source}", f"<p>To show: {text(shape.shows)}.</p>", charts_of(shape)
        )
        for shape in SHAPES
    ]
    return plain_page("Published charts, drawn from made-up results", f"{made_up}<ul>{contents}</ul>", sections)


def main() -> int:
    """Writes the page. The exit code is 1 without the library of charts."""
    if not parts.charts_available():
        print(parts.MISSING)
        return 1
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "shapes.html")
    path.write_text(page(), encoding="utf-8")
    print(f"{path}: {sum(len(charts_of(shape)) for shape in SHAPES)} charts of {len(SHAPES)} experiments")
    return 0


if __name__ == "__main__":
    sys.exit(main())
