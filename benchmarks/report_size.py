# SPDX-License-Identifier: BSD-3-Clause
"""5,000 cases: how long collecting takes, how long the HTML report, how large it is, how long a browser needs for it.

No host and no root: results are made up, of the size of real ones (six launches of ten windows; half of the cases with
latency histograms of 300 buckets a launch). ``python benchmarks/report_size.py [CASES [FILE]]``; FILE keeps the page.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from pytest_icbench.cli.report import write_html
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.figure.series import windows_of
from pytest_icbench.report.html import parts
from pytest_icbench.report.html.page import Page
from pytest_icbench.stats.quantiles import Estimate, Histogram
from pytest_icbench.store.run_directory import TestRecord
from tests.measurements import launch, measurement

SWITCHES = ("linux-bridge", "basicfwd", "testpmd", "ovs", "vpp", "snabb", "sriov")
SIZES = (64, 128, 256, 512, 1024, 1280, 1500, 1518)
BURSTS = (4, 16, 32, 64, 128, 256)
PAIRS = (1, 2, 4, 8)

#: Bounds for 5,000 cases on a machine that does nothing else.
MOST_COLLECTION_S, MOST_REPORT_S, MOST_BYTES, MOST_OPEN_S = 3.0, 20.0, 15_000_000, 8.0

SCENARIO = """
import pytest

@pytest.mark.icbench(switch={switches}, packet_size={sizes}, burst={bursts}, pairs={pairs}, rate={rates!r})
def test_many(icbench):
    icbench.gate(icbench.throughput())
"""


def cases(number: int) -> list[Case]:
    found = list(_cases())
    return found[:number]


def _cases() -> Iterator[Case]:
    for rate in (None, *(1_000_000 * load for load in range(1, 20))):
        for pairs in PAIRS:
            for burst in BURSTS:
                for size in SIZES:
                    for switch in SWITCHES:
                        latency = rate is not None and rate % 2_000_000 == 0
                        yield Case(
                            switch,
                            Frames(Traffic(size), burst, Rate(rate)),
                            pairs=pairs,
                            dimension="latency" if latency else "throughput",
                        )


def fill(page: Page, chosen: list[Case]) -> list[TestRecord]:
    dice = random.Random(1)
    tests = []
    template = launch()
    for case in chosen:
        rate = dice.uniform(1e6, 2e7)
        windows = tuple(replace(each, received=dice.randrange(90_000, 100_000)) for each in template.windows)
        rtt = None
        if case.dimension == "latency":
            values = sorted(dice.sample(range(4000, 400_000), 300))
            rtt = Histogram(tuple((value, 10) for value in values), values[0], values[-1], 9000.0, 3)
        launches = tuple(replace(template, index=n, windows=windows, rtt=rtt) for n in range(6))
        found = measurement(
            case,
            throughput_pps=Estimate(rate, rate * 0.98, rate * 1.02),
            verdict="PASS",
            per_launch=launches,
            rtt_mean_ns=9000.0 if rtt else None,
        )
        name = f"scenarios/test_many.py::test_many[{case.id}]"
        page.add(name, Result.of(found), windows_of(found))
        tests.append(TestRecord(name, "passed", 5.0))
    return tests


def timed(what: str, run: Callable[[], object]) -> float:
    """Seconds that passed. Prints them, and the processor's with children: on a busy machine they differ."""
    began, before = time.perf_counter(), os.times()
    run()
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    spent = time.perf_counter() - began
    print(f"{what}: {spent:.1f} s, processor {cpu:.1f} s", flush=True)
    return spent


def collect(directory: Path, number: int) -> None:
    rates = ["max", *(f"{load}M" for load in range(1, 20))]
    per_rate = len(SWITCHES) * len(SIZES) * len(BURSTS) * len(PAIRS)
    text = SCENARIO.format(
        switches=list(SWITCHES),
        sizes=list(SIZES),
        bursts=list(BURSTS),
        pairs=list(PAIRS),
        rates=rates[: -(-number // per_rate)],
    )
    (directory / "test_many.py").write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(directory)]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
    print(done.stdout.strip().splitlines()[-1])


def open_in_browser(path: Path) -> float:
    """Returns the seconds until every open chart is drawn; none without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no Chromium on PATH: not opened")
        return 0.0
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(300_000)
        opened = timed("browser, until every open chart is drawn", lambda: _ready(page, path))
        timed("browser, filter", lambda: _filter(page))
        browser.close()
    return opened


def _ready(page: object, path: Path) -> None:
    page.goto(path.as_uri())  # type: ignore[attr-defined]
    page.wait_for_selector("html[data-ic-ready=yes]")  # type: ignore[attr-defined]


def _filter(page: object) -> None:
    page.fill("#ic-filter", "vpp-512B-b32")  # type: ignore[attr-defined]
    page.wait_for_function("document.getElementById('ic-count').textContent !== ''")  # type: ignore[attr-defined]


def main() -> int:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        collected = timed("collection, a whole pytest process", lambda: collect(directory, number))
        page, tests = Page(), list[TestRecord]()
        tests.extend(fill(page, cases(number)))
        timed("Vega's script", parts.chart_script)
        path = Path(sys.argv[2]) if len(sys.argv) > 2 else directory / "report.html"
        written = timed(f"report of {len(tests)} cases", lambda: write_html(path, page, tests))
        size = path.stat().st_size
        print(f"size: {size / 1e6:.1f} MB")
        opened = open_in_browser(path)
    kept = collected < MOST_COLLECTION_S and written < MOST_REPORT_S and size < MOST_BYTES and opened < MOST_OPEN_S
    print("within the bounds" if kept else "beyond a bound")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
