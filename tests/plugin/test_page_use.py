# SPDX-License-Identifier: BSD-3-Clause
"""The report in a real Chromium as a reader uses it: first screen, links, scales, legends, print, and axe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.cli.report import write_html
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.figure.registry import Content, section_charts
from pytest_icbench.report.html.compare import PlainSection, plain_page
from pytest_icbench.report.html.page import Page
from pytest_icbench.store.run_directory import TestRecord
from tests.measurements import launch
from tests.plugin.test_browser import CHROMIUM, Opened, add, browser
from tests.shapes import SHAPES

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt install chromium")]
#: A fixture of that file.
__all__ = ["browser"]

#: A path whose round trip is long beside the others'.
SLOW = "snabb"
#: More rows than are shown at once, and fewer: axe takes 10 s for many, which have the elements of few.
MANY, FEW = 230, 20
#: A line has three points: the first screen has the shortest and the longest frames.
SIZES = (64, 512, 1500)
#: Rows beyond those of one path: three paths with rates and two with round trips, each but one of all rows.
OTHERS = 3 * len(SIZES) + 2 * len(SIZES) - 1


#: Follows links one by one; returns those that do not lead to one place, which is marked.
FOLLOW = """async targets => {
  const lost = [];
  for (const target of targets) {
    const followed = new Promise(done => addEventListener('hashchange', () => setTimeout(done), { once: true }));
    location.hash = target;
    await followed;
    const found = document.querySelectorAll(`[id="${target.slice(1)}"].ic-target`);
    if (found.length !== 1) lost.push(target);
  }
  return lost;
}"""


def written(path: Path, rows: int) -> Path:
    """The page of a run with as many rows for one path, besides those of others."""
    page, tests = Page(), list[TestRecord]()
    for switch, value in (("testpmd", 9e6), ("ovs", 3e6), ("direct", 20e6)):
        for size in SIZES:
            add(
                page,
                tests,
                Case(switch, Frames(Traffic(size))),
                throughput_pps=value,
                throughput_pps_low=value * 0.9,
            )
    for switch, rtt in (("ovs", 8e3), (SLOW, 700e3)):
        for size in SIZES:
            case = Case(switch, Frames(Traffic(size), 4, Rate(1000)), pairs=1, dimension="latency")
            means: dict[str, Any] = {
                "rtt_mean_ns": rtt * 1.5,
                "rtt_mean_ns_low": rtt * 1.4,
                "rtt_mean_ns_high": rtt * 1.6,
            }
            median: dict[str, Any] = {
                "rtt_p50_ns": rtt,
                "rtt_p50_ns_low": rtt * 0.9,
                "rtt_p50_ns_high": rtt * 1.1,
                "rtt_p99_ns": rtt * 2,
            }
            add(page, tests, case, per_launch=(launch(),), disturbed_windows=12, windows=12, **means, **median)
    for burst in range(1, rows):
        add(page, tests, Case("ovs", Frames(burst=burst, rate=Rate(1_000_000))))
    for number in range(16):
        name = f"test_x.py::test_a[vpp-64B-b{number}-1vs1-Rmax]"
        page.skipped.append((name, "vpp is not installed: build it"))
        tests.append(TestRecord(name, "skipped", 0.0, "vpp is not installed: build it"))
    write_html(path, page, tests)
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("use") / "report.html", MANY)


def opening(browser: Any, report: Path) -> Iterator[Opened]:
    found = Opened(browser, report, viewport={"width": 1600, "height": 900}, color_scheme="light")
    yield found
    assert found.troubles == []
    found.context.close()


#: For a test that does something with the page.
opened = pytest.fixture(opening)
#: For tests that look at it.
seen = pytest.fixture(opening, scope="module")


def svg_texts(opened: Opened, chart: str, role: str) -> list[str]:
    opened.page.locator(f"#ic-fig-{chart}").scroll_into_view_if_needed()
    found: list[str] = opened.page.locator(f"#ic-fig-{chart} .{role} text").all_text_contents()
    return found


def marks(opened: Opened, chart: str) -> int:
    return int(opened.page.locator(f"#ic-fig-{chart} .mark-symbol path").count())


def test_the_first_screen_has_the_answer(seen: Opened) -> None:
    page = seen.page
    assert page.title() == page.locator("h1").inner_text() == "Which switch? 4 paths, 64, 512 and 1500 bytes"
    for selector in (".ic-tiles", ".ic-warning", ".ic-sentences", "#ic-fig-rates-0 svg", "#ic-fig-rates-1 svg"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= 900, selector
    assert "72 of 72 windows" not in page.inner_text(".ic-warning")
    assert "Disturbed: 72 of" in page.inner_text(".ic-warning")
    assert "16 not measured: vpp is not installed" in re.sub(r"\s+", " ", page.inner_text(".ic-tiles"))
    assert page.locator("#ic-skipped details").count() == 1
    assert page.locator("#results-table td.col-testId", has_text="vpp").count() == 0
    assert svg_texts(seen, "rates-0", "role-axis-label")[-3:] == ["testpmd", "ovs", "direct"]


def test_contents_and_links_lead_to_every_part_and_case(opened: Opened) -> None:
    page = opened.page
    targets = page.eval_on_selector_all("#ic-contents a", "links => links.map(link => link.hash)")
    assert {"#ic-answer", "#ic-rates", "#ic-delays", "#ic-size", "#ic-latency", "#ic-cases", "#ic-skipped"} <= set(
        targets
    )
    assert all(page.locator(f"[id='{target[1:]}']").count() == 1 for target in targets)
    page.get_by_role("button", name="Show all rows").click()
    page.wait_for_function(f"document.querySelectorAll('#ic-table a').length === {MANY + OTHERS}")
    targets = page.eval_on_selector_all("#ic-table a", "links => links.map(link => link.hash)")
    assert len(set(targets)) == len(targets)
    assert page.evaluate(FOLLOW, targets) == []


def test_a_link_shows_a_row_beyond_those_that_are_shown(opened: Opened) -> None:
    page = opened.page
    rows = "#results-table tbody.results-table-row:not(.ic-hidden)"
    assert page.locator(rows).count() == 200
    last = f"case-throughput-ovs-64B-b{MANY - 1}-1vs1-R1M"
    assert page.locator(f"[id='{last}']").count() == 0
    assert page.locator("#results-table .ic-lines li").count() == 200  # lines of rows that are shown
    page.evaluate("id => { location.hash = id; }", last)
    page.wait_for_function("id => document.getElementById(id).getBoundingClientRect().height > 0", arg=last)
    page.evaluate("document.querySelector('#ic-filter').value = ''")
    assert page.locator(rows).count() == MANY + OTHERS


def test_rows_without_media_have_no_elements_for_it(seen: Opened) -> None:
    assert seen.page.locator("#results-table .media").count() == MANY + OTHERS
    assert seen.page.locator("#results-table video, #results-table img").count() == 0


def test_many_charts_of_a_section_are_behind_one_line(opened: Opened) -> None:
    section = opened.page.locator("#ic-launches")
    assert section.locator("details.ic-figure").count() == 40
    rest = section.locator("details.ic-rest")
    assert rest.locator("summary").first.inner_text() == "28 more charts"
    assert rest.locator("details.ic-figure").count() == 28
    assert not rest.locator("details.ic-figure").first.is_visible()
    rest.locator("summary").first.click()
    chart = rest.locator("details.ic-figure").first
    chart.locator("summary").first.click()
    chart.locator(".ic-plot svg").wait_for()


def test_a_section_has_one_scale_which_the_reader_chooses(opened: Opened) -> None:
    page = opened.page
    # Round trips lie far apart, so both charts are logarithmic, with the same ticks.
    before = [svg_texts(opened, f"delays-{place}", "role-axis-label") for place in (0, 1)]
    numbers = [[text for text in texts if text[0].isdigit()] for texts in before]
    assert numbers[0] == numbers[1]
    assert numbers[0][0] != "0"
    assert "µs (logarithmic)" in svg_texts(opened, "delays-0", "role-axis-title")
    page.locator("#ic-delays").get_by_label("Scale").select_option("linear")
    page.wait_for_function("document.querySelector('#ic-fig-delays-0 .role-axis-title').textContent === 'µs'")
    assert "0" in svg_texts(opened, "delays-0", "role-axis-label")


def test_a_path_is_hidden_by_its_legend_and_the_others_get_the_room(opened: Opened) -> None:
    page = opened.page
    page.locator("#ic-fig-latency-0").scroll_into_view_if_needed()
    page.locator("#ic-latency").get_by_label("Scale").select_option("linear")
    page.wait_for_function("!document.querySelector('#ic-fig-latency-0 svg').textContent.includes('logarithmic')")
    assert marks(opened, "latency-0") == 6
    greatest = max(float(text.replace(",", "")) for text in svg_texts(opened, "latency-0", "role-axis-label"))
    button = page.locator("#ic-fig-latency-0 .ic-legend button", has_text=SLOW)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    page.wait_for_function("document.querySelectorAll('#ic-fig-latency-0 .mark-symbol path').length === 3")
    labels = [float(text) for text in svg_texts(opened, "latency-0", "role-axis-label") if float(text) < 60]
    assert greatest > 1000
    assert labels
    button.press("Enter")
    page.wait_for_function("document.querySelectorAll('#ic-fig-latency-0 .mark-symbol path').length === 6")


def test_the_mean_is_shown_on_request(opened: Opened) -> None:
    page = opened.page
    page.locator("#ic-fig-latency-0").scroll_into_view_if_needed()
    assert svg_texts(opened, "latency-0", "role-axis-title")[-1].startswith("median RTT")
    page.locator("#ic-latency").get_by_label("Value").select_option("mean")
    page.wait_for_function("document.querySelector('#ic-fig-latency-0 svg').textContent.includes('mean RTT')")


def test_intervals_at_one_place_are_side_by_side(seen: Opened) -> None:
    seen.page.locator("#ic-fig-size-0-pps").scroll_into_view_if_needed()
    places = seen.page.eval_on_selector_all(
        "#ic-fig-size-0-pps .mark-symbol path", "all => all.map(each => each.getBoundingClientRect().x)"
    )
    assert len({round(place) for place in places}) == len(places) == 10  # three paths, three sizes; a published value


@pytest.mark.parametrize(("measured", "drawn"), [(12.3e6, True), (5e6, False)])
def test_a_published_value_is_drawn_whole_or_counted(
    browser: Any, tmp_path: Path, measured: float, drawn: bool
) -> None:
    """The published one is 12.8 Mpps; the scale of 12.3 Mpps ends at 13."""
    page = Page()
    for size in SIZES:
        add(page, [], Case("testpmd", Frames(Traffic(size))), throughput_pps=measured)
    write_html(tmp_path / "report.html", page, [])
    opened = browser.new_page()
    opened.goto((tmp_path / "report.html").as_uri())
    chart = opened.locator("#ic-fig-size-0-pps")
    chart.scroll_into_view_if_needed()
    marks = chart.locator(".mark-symbol path")
    marks.first.wait_for(state="attached")
    assert marks.count() == (4 if drawn else 3)
    assert chart.locator("[clip-path] .mark-symbol path, .mark-symbol[clip-path] path").count() == 0
    assert ("1 published beyond the scale." in (chart.text_content() or "")) is not drawn
    opened.close()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (400, "dark"),
        (1600, "light"),
        pytest.param(400, "light", marks=pytest.mark.slow),
        pytest.param(1024, "light", marks=pytest.mark.slow),
        pytest.param(1024, "dark", marks=pytest.mark.slow),
        pytest.param(1600, "dark", marks=pytest.mark.slow),
    ],
)
def test_axe_has_no_complaint(browser: Any, report: Path, tmp_path: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'pytest-icbench[test]'")
    if (width, scheme) != (1600, "light"):
        report = written(tmp_path / "few.html", FEW)
    found = Opened(browser, report, viewport={"width": width, "height": 900}, color_scheme=scheme)
    result = axe.Axe().run(found.page).response
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]] == []
    assert result["passes"]
    found.context.close()


def test_axe_has_no_complaint_about_a_page_of_charts(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'pytest-icbench[test]'")
    sections = [
        PlainSection(shape.row, shape.source, "", section_charts(Content.of(shape.results()))[0][1])
        for shape in SHAPES[:2]
    ]
    path = tmp_path / "plain.html"
    path.write_text(plain_page("Charts", "", sections), encoding="utf-8")
    found = Opened(browser, path, viewport={"width": 400, "height": 900})
    assert found.page.locator("main svg.marks").count() >= 2
    assert [rule["id"] for rule in axe.Axe().run(found.page).response["violations"]] == []
    found.context.close()


def test_names_of_buttons_contain_what_they_show(seen: Opened) -> None:
    names = seen.page.eval_on_selector_all(
        "button[aria-label]", "all => all.map(each => [each.textContent.trim(), each.getAttribute('aria-label')])"
    )
    assert len(names) > 10
    assert [pair for pair in names if pair[0] not in pair[1]] == []


def test_print_has_no_logs_no_controls_and_no_page_for_a_heading_alone(opened: Opened, tmp_path: Path) -> None:
    page = opened.page
    page.emulate_media(media="print")
    for selector in (
        ".ic-controls",
        ".ic-more",
        "#ic-contents",
        "#ic-one-case",
        ".logwrapper",
        "p.filter",
        "#ic-more-rows",
    ):
        assert not any(part.is_visible() for part in page.locator(selector).all()), selector
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    pages = len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes()))
    assert 2 <= pages < 10  # two hundred rows among them


#: The labels of a horizontal axis, as the boxes in which a browser draws their characters.
LABELS = """chart => [...document.querySelectorAll(`#ic-fig-${chart} .role-axis-label text`)].flatMap(text => {
  const parts = [...text.querySelectorAll('tspan'), ...(text.querySelector('tspan') ? [] : [text])];
  return parts.filter(part => part.textContent.length > 1).map(part => {
    const box = part.getBoundingClientRect();
    return [part.textContent, box.left, box.top, box.right, box.bottom];
  });
})"""


def test_sizes_that_are_nearly_the_same_have_labels_beneath_each_other(browser: Any, tmp_path: Path) -> None:
    page, tests = Page(), list[TestRecord]()
    for size in (64, 1280, 1500, 1518):
        add(page, tests, Case("ovs", Frames(Traffic(size))))
    write_html(tmp_path / "report.html", page, tests)
    for opened in opening(browser, tmp_path / "report.html"):
        opened.page.locator("#ic-fig-size-0-pps").scroll_into_view_if_needed()
        opened.page.wait_for_selector("#ic-fig-size-0-pps svg")
        boxes = {label: box for label, *box in opened.page.evaluate(LABELS, "size-0-pps")}
        near = [boxes[size] for size in ("1280", "1500", "1518")]
        assert [above[3] <= below[1] for above, below in pairwise(near)] == [True, True]
