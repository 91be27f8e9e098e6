# SPDX-License-Identifier: BSD-3-Clause
"""The HTML report in a real Chromium: figures, filter, hostile texts, widths, dark mode, print, and no request.

Needs Chromium (``apt install chromium``) and playwright, which drives it; skipped without.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.cli.report import write_html
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.figure.series import windows_of
from pytest_icbench.report.html.page import Page, add_history
from pytest_icbench.stats.quantiles import Histogram
from pytest_icbench.store.history_file import append, make_entry
from pytest_icbench.store.run_directory import TestRecord
from tests.measurements import launch, measurement, result, side_by_side

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'&\x1b[31m\x07 中文 \u202eא"
)
#: Of a test that has two results.
VERSIONS = "scenarios/test_x.py::test_throughput[snabb:new-64B-b32-1vs1-Rmax]"
#: Chromium on a machine that measures meanwhile.
PATIENCE_MS = 120_000

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt install chromium"),
]
pytest.importorskip("playwright", reason="playwright drives the browser: pip install 'pytest-icbench[test]'")
pytest.importorskip("pytest_html")
pytest.importorskip("vl_convert", reason="no figures without vl-convert-python")


def cases() -> list[Case]:
    found = [Case(switch, Frames(Traffic(size))) for switch in ("ovs", "vpp", "testpmd") for size in (64, 512, 1500)]
    found += [
        Case(switch, Frames(rate=Rate(load))) for switch in ("ovs", "vpp") for load in (1_000_000, 2_000_000, 4_000_000)
    ]
    found += [Case(switch, pairs=2) for switch in ("ovs", "vpp")]
    sizes = (64, 1500)
    found += [
        Case(switch, Frames(Traffic(size), 4, Rate(1000)), pairs=1, dimension="latency")
        for switch in ("ovs", "snabb")
        for size in sizes
    ]
    return found


def add(page: Page, tests: list[TestRecord], case: Case, name: str | None = None, **changed: Any) -> None:
    pps = (5e6 if case.switch == "ovs" else 8e6) * 64 / case.traffic.packet_size
    figures: dict[str, Any] = {
        "throughput_pps": pps,
        "throughput_pps_low": pps * 0.95,
        "throughput_pps_high": pps * 1.05,
        "verdict": "PASS",
        "per_launch": tuple(launch(index=number) for number in range(6)),
    }
    if case.dimension == "latency":
        rtt = Histogram(((8000, 9000), (20000, 900), (90000, 100)), 7000, 90000, 9000.0, 3)
        figures |= {"per_launch": (launch(rtt=rtt),), "rtt_mean_ns": 9000.0, "rtt_p99_ns": 20000.0}
        figures |= {"rtt_p99_ns_low": 18000.0, "rtt_p99_ns_high": 23000.0}
    found = result(case, **{**figures, **changed})
    nodeid = name or f"scenarios/test_x.py::test_{case.dimension}[{case.id}]"
    page.add(nodeid, found, windows_of(found))
    if tests and tests[-1].nodeid == nodeid:
        tests.pop()  # its last result decides
    tests.append(TestRecord(nodeid, "failed" if found.verdict == "REGRESSED" else "passed", 1.0, found.reason))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page, tests = Page(), list[TestRecord]()
    for case in cases():
        add(page, tests, case)
    candidate = Case("snabb", candidate="new")
    add(page, tests, candidate.base, VERSIONS, verdict=None)
    slower = side_by_side(candidate, "REGRESSED", 0.9)
    add(
        page,
        tests,
        candidate,
        VERSIONS,
        verdict="REGRESSED",
        reason="slower",
        decision="REGRESSED",
        side_by_side=slower,
    )
    treatment = {"switch": {"version": HOSTILE}, "kernel": HOSTILE}
    bad = {"verdict": "REGRESSED", "reason": HOSTILE, "treatment": treatment, "bottleneck_evidence": HOSTILE}
    add(page, tests, Case("basicfwd"), f"test_x.py::test_h[{HOSTILE}]", **bad)
    page.repeats[f"test_x.py::test_h[{HOSTILE}]"] = HOSTILE
    page.skipped.append((f"test_x.py::test_skipped[{HOSTILE}]", HOSTILE))
    tests.append(TestRecord(f"test_x.py::test_skipped[{HOSTILE}]", "skipped", 0.0, HOSTILE))
    path = tmp_path_factory.mktemp("page") / "report.html"
    history = path.with_name("history.jsonl")
    for day in range(12):
        at = {"started_at": 1.6e9 + 86_400 * day, "throughput_pps": 5e6 if day < 6 else 4.85e6}
        entry = make_entry(measurement(Case("ovs"), **at), f"run{day}")
        assert entry is not None
        append(history, [entry])
    add_history(page, history)
    assert page.sources == []
    write_html(path, page, tests)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Opened:
    """A page and what went wrong on it."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **context)
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("request", self._requested)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ic-ready=yes]")
        self.page.evaluate("for (const tests of document.querySelectorAll('#ic-tests')) tests.open = true")

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(("file:", "blob:", "data:")):
            self.troubles.append(f"request: {request.url}")

    def colour(self, selector: str, what: str) -> str:
        found: str = self.page.evaluate(
            "([selector, what]) => getComputedStyle(document.querySelector(selector))[what]", [selector, what]
        )
        return found


@pytest.fixture(scope="module")
def opened(browser: Any, report: Path) -> Iterator[Opened]:
    found = Opened(browser, report, viewport={"width": 1600, "height": 1000}, color_scheme="light")
    yield found
    found.context.close()


def test_it_opens_without_an_error_or_a_request_and_shows_every_kind_of_figure(opened: Opened) -> None:
    assert opened.troubles == []
    assert opened.page.locator("#ic-first h2").all_text_contents() == ["Before and after", "Rate", "Round trip"]
    assert opened.page.locator("#ic-figures h2").all_text_contents() == [
        "Received against offered rate",
        "Rate against packet size",
        "Several pairs: mean and total",
        "Round trip by percentile",
        "Launches",
        "History",
    ]
    charts = [chart for section in drawn(opened) for chart in section["charts"]]
    height_of = {f"ic-fig-{chart['id']}": chart["height"] for chart in charts}
    for figure in opened.page.locator("#ic-figures details.ic-figure[open]").all():
        box = figure.locator(".ic-plot svg").bounding_box()
        assert box["width"] > 200
        assert box["height"] >= height_of[figure.get_attribute("id")] > 20
        assert figure.locator(".ic-plot").get_attribute("aria-label")
    # Lines, marks and intervals are really there.
    marks = opened.page.locator("#ic-fig-size-0-pps svg .mark-symbol path").count()
    assert marks >= 9
    assert opened.page.locator("#ic-fig-size-0-pps svg .mark-rule line").count() >= 9


def drawn(opened: Opened) -> list[dict[str, Any]]:
    """The sections of the page's data."""
    found: list[dict[str, Any]] = opened.page.evaluate(
        "JSON.parse(document.getElementById('ic-data').textContent).sections"
    )
    return found


def test_hostile_texts_are_shown_and_do_nothing(opened: Opened) -> None:
    assert "owned" not in opened.page.title()
    assert opened.page.locator("img[src=x]").count() == 0
    row = opened.page.locator("#results-table td.col-testId", has_text="test_h[").first
    assert "<script>document.title='owned'</script>" in row.inner_text()
    assert "中文" in row.inner_text()
    opened.page.locator("#ic-table button.ic-show[aria-label^='details of test_h[']").click()
    facts = opened.page.locator("#ic-case-body .ic-facts").inner_text()
    assert "<img src=x onerror" in facts
    assert "owned" not in opened.page.title()


def test_a_candidate_is_reported_from_its_base(opened: Opened) -> None:
    page = opened.page
    decided = page.locator("#ic-answer").inner_text()
    assert "snabb:new against its base: REGRESSED." in decided
    assert "false alarms of the whole session (2 comparisons): at most 1 %" in decided.lower()
    assert "snabb:new against its base: change of the rate" in page.locator("#ic-change summary").first.inner_text()
    legend = page.locator("#ic-fig-size-0-pps .ic-legend button").all_inner_texts()
    assert {"snabb", "snabb:new"} <= {text.strip() for text in legend}
    lines = page.locator("#results-table td.col-testId", has_text="snabb:new").locator("li").all_inner_texts()
    assert [line.partition(" · ")[0] for line in lines] == [
        "throughput of snabb-64B-b32-1vs1-Rmax: not judged",
        "throughput of snabb:new-64B-b32-1vs1-Rmax: REGRESSED",
    ]
    names = page.locator("#ic-case option", has_text="snabb:new").all_text_contents()
    assert names[0].endswith("throughput of snabb-64B-b32-1vs1-Rmax")
    assert len(set(names)) == 2


def test_the_filter_narrows_rows_and_figures(opened: Opened) -> None:
    page = opened.page
    shown = "#results-table tbody.results-table-row:not(.ic-hidden) td.col-testId"
    every = page.locator(shown).count()
    page.fill("#ic-filter", "vpp 512B")
    page.wait_for_function(f"document.querySelectorAll({shown!r}).length === 1")
    assert "1 of" in page.inner_text("#ic-count")
    page.locator("#ic-fig-size-0-pps").scroll_into_view_if_needed()  # what is out of sight is drawn later
    page.wait_for_function(
        "document.querySelectorAll('#ic-fig-size-0-pps svg .role-mark.mark-symbol path').length === 1"
    )
    page.fill("#ic-filter", "")
    page.wait_for_function(f"document.querySelectorAll({shown!r}).length === {every}")
    page.uncheck("input[data-test-result=passed]")
    page.wait_for_function(f"document.querySelectorAll({shown!r}).length === 2")
    page.check("input[data-test-result=passed]")


def test_a_figure_has_its_table_and_is_saved_with_its_data(opened: Opened) -> None:
    figure = opened.page.locator("#ic-fig-size-0-pps")
    figure.locator("summary", has_text="Data and files").click()
    figure.locator("summary", has_text="Data as a table").click()
    figure.locator("tbody tr").nth(13).wait_for()
    assert figure.locator("tbody tr").count() == 14
    with opened.page.expect_download() as waiting:
        figure.locator("button.ic-csv").click()
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    assert {row["path"] for row in rows} >= {"ovs", "vpp", "testpmd"}
    assert [row["frmol, Mpps"] for row in rows if row["case"] == "ovs-64B-b32-1vs1-Rmax"] == ["5"]
    with opened.page.expect_download() as waiting:
        figure.locator("button.ic-svg").click()
    drawing = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert drawing.startswith("<svg")
    assert "var(" not in drawing


def test_a_step_in_the_history_is_seen(opened: Opened) -> None:
    svg = opened.page.locator("#ic-fig-history-0 svg")
    points = [mark.bounding_box()["y"] for mark in svg.locator(".role-mark.mark-symbol path").all()]
    assert len(points) == 12
    assert points[-1] - points[0] > 40  # pixels, for 3 %
    dates = svg.locator(".role-axis-label text").all_text_contents()
    assert any(text.startswith("2020-09-") for text in dates)
    assert "-3.0% worse" in svg.locator("text").all_text_contents()


def test_what_is_folded_and_sorted_says_so(opened: Opened) -> None:
    page = opened.page
    environment = page.get_by_role("button", name="Environment")
    assert environment.get_attribute("aria-expanded") == "false"
    assert not page.locator("#environment").is_visible()
    environment.click()
    assert environment.get_attribute("aria-expanded") == "true"
    assert page.locator("#environment").is_visible()
    environment.press("Enter")
    assert not page.locator("#environment").is_visible()
    row = page.get_by_role("row", name="snabb:new").get_by_role("button", name="Failed")
    assert row.get_attribute("aria-expanded") == "true"
    row.press(" ")
    assert row.get_attribute("aria-expanded") == "false"
    assert row.evaluate("each => each === document.activeElement")
    row.click()
    assert row.get_attribute("aria-expanded") == "true"
    head = page.locator("#results-table th", has_text="Test")
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    tests = [text.split("\n")[0] for text in page.locator("#results-table td.col-testId").all_inner_texts()]
    assert tests == sorted(tests)
    assert head.get_by_role("button").evaluate("each => each === document.activeElement")
    head.click()
    assert head.get_attribute("aria-sort") == "descending"
    names = [each.get_attribute("aria-label") for each in page.locator("button.ic-show").all()]
    assert len(set(names)) == len(names) > 10
    assert opened.troubles == []


def test_windows_of_a_case_can_be_chosen_by_keyboard(opened: Opened) -> None:
    page = opened.page
    button = page.locator("#ic-table button.ic-show").first
    button.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "ic-one-case"
    page.wait_for_selector("#ic-case-body svg .mark-symbol path")
    assert opened.troubles == []


def test_the_path_of_a_case_is_a_list_and_saved_as_a_page(opened: Opened) -> None:
    opened.page.locator("#ic-table button.ic-show").first.click()
    path = opened.page.locator("#ic-case-body details.ic-figure", has_text="The path under test")
    path.scroll_into_view_if_needed()
    stations = path.locator("ol.ic-path > li")
    stations.nth(8).wait_for()
    assert path.locator(".ic-plot").get_attribute("role") == "group"
    assert stations.first.inner_text().startswith("container a: sender")
    path.locator("summary", has_text="Data and files").click()
    with opened.page.expect_download() as waiting:
        path.locator("button.ic-html").click()
    saved = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert saved.count("<li") == stations.count() == 9
    assert "--ic-paper" in saved
    assert "<script" not in saved
    assert opened.troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1024, 1600])
def test_narrow_and_wide_light_and_dark(opened: Opened, scheme: str, width: int) -> None:
    page = opened.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    # Figures are drawn anew for the width that they have then, as soon as they are seen.
    page.locator("#ic-fig-size-0-pps").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('#ic-fig-size-0-pps svg').clientWidth <= innerWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cell = page.locator("#ic-notable td").first
    wide = cell.bounding_box()["width"] / cell.locator("xpath=ancestor::table").bounding_box()["width"]
    assert (wide > 0.9) == (width == 400)  # cells of a row below each other
    name = page.locator("#results-table .col-testId").first.bounding_box()["width"]
    assert (name > 0.9 * width) == (width == 400)
    assert not any(part.is_visible() for part in page.locator("#results-table .extras-row.hidden").all())
    ink, paper = opened.colour("h1", "color"), opened.colour("html", "backgroundColor")
    assert (brightness(ink) < 100) == (scheme == "light")
    assert (brightness(paper) > 200) == (scheme == "light")
    label = opened.colour("#ic-fig-size-0-pps svg .role-axis text", "fill")
    assert abs(brightness(label) - brightness(paper)) > 120
    assert opened.troubles == []


def test_print_is_dark_on_white_whatever_the_screen(opened: Opened, tmp_path: Path) -> None:
    page = opened.page
    page.emulate_media(media="print", color_scheme="dark")
    assert brightness(opened.colour("html", "backgroundColor")) > 200
    assert brightness(opened.colour("#ic-fig-size-0-pps svg .role-axis text", "fill")) < 100
    assert opened.colour(".ic-tools", "display") == "none"
    page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
    page.emulate_media(media="screen", color_scheme="light")


def brightness(colour: str) -> float:
    """0 to 255, of ``rgb(1, 2, 3)``."""
    parts = [float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    return sum(parts) / 3


def test_the_table_of_all_cases_sorts_by_numbers_within_a_unit_and_filters(opened: Opened) -> None:
    page = opened.page
    names = "#ic-table tbody td:first-child"
    cases = page.locator(names).count()
    assert page.locator("#ic-table th").all_inner_texts() == [
        "Case",
        "Value",
        "Unit",
        "95 %",
        "Change",
        "Limit by",
        "Verdict",
    ]
    head = page.locator("#ic-table th", has_text="Value")
    head.get_by_role("button").click()
    page.locator("#ic-table th[aria-sort=ascending]", has_text="Value").get_by_role("button").press("Enter")
    assert page.locator("#ic-table th[aria-sort=descending]").inner_text() == "Value"
    units = page.locator("#ic-table tbody td:nth-child(3)").all_inner_texts()
    values = [
        float(text.replace(",", "")) for text in page.locator("#ic-table tbody td:nth-child(2)").all_inner_texts()
    ]
    rates = [value for value, unit in zip(values, units, strict=True) if unit == "Mpps"]
    assert rates == sorted(rates, reverse=True)
    assert len(units) == cases
    assert sorted(units, reverse=True) == units
    page.fill("#ic-filter", "snabb:new REGRESSED")
    page.wait_for_function(f"document.querySelectorAll({names!r}).length === 1")
    page.fill("#ic-filter", "")
    page.wait_for_function(f"document.querySelectorAll({names!r}).length === {cases}")
    assert opened.troubles == []
