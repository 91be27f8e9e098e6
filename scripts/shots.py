# SPDX-License-Identifier: BSD-3-Clause
"""Photographs pages in Chromium, to be looked at: python scripts/shots.py PAGE… [--out DIR].

It photographs the first screen and the whole page at widths of 400, 1024 and 1600 px, light and dark, and prints the
page. It lists the page's messages and requests, parts that are wider than the screen, and axe's complaints. PAGE is a
file, or the directory of a run, whose page is written anew. The exit status is 1 if anything was listed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.cli.main import main as icbench

OUT = Path("build") / "shots"
#: Widths of a telephone, a tablet and a desktop, with the height of the screen, in pixels.
SCREENS = {400: 900, 1024: 768, 1600: 900}
SCHEMES = ("light", "dark")
#: A page on a machine that does other things.
PATIENCE_MS = 300_000
#: The longest picture of a whole page, in pixels. Chromium draws no longer one.
LONGEST = 16_000


@dataclass
class Look:
    """What was found on a page.

    Attributes:
        opened_s: seconds until the charts in sight were drawn, at the first screen.
        pages: sheets of A4 that it prints on.
        troubles: what is wrong, each with the screen on which it was seen.
    """

    name: str
    opened_s: float = 0.0
    pages: int = 0
    troubles: list[str] = field(default_factory=list)


def chromium() -> str:
    """Returns the browser. Raises SystemExit if there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        raise SystemExit("Chromium is not here: apt install chromium")
    return found


def page_of(given: Path, out: Path) -> tuple[str, Path]:
    """Returns the name and file of a page; that of a run's directory is written. Raises SystemExit."""
    if not given.is_dir():
        if not given.is_file():
            raise SystemExit(f"{given} is no page and no run: name a file, or a directory below reports/")
        return given.stem if given.stem != "report" else given.resolve().parent.name, given
    name = given.resolve().name
    file = out / f"{name}.html"
    if icbench(["report", str(given), "-q", "--html", str(file)]):
        raise SystemExit(f"{given} is no run whose page can be shown")
    return name, file


def look_at(browser: Any, name: str, file: Path, out: Path) -> Look:
    """Photographs a page at each size and colour, prints it, and returns what was found out."""
    look = Look(name)
    for width, height in SCREENS.items():
        for scheme in SCHEMES:
            where = f"{width}-{scheme}"
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            context.set_default_timeout(PATIENCE_MS)
            tab = context.new_page()
            troubles = _listen(tab)
            opened_s = _opened(tab, file)
            look.opened_s = look.opened_s or opened_s
            tab.screenshot(path=out / f"{name}-{where}-first.png")
            _draw_all(tab)
            tall = tab.evaluate("document.documentElement.scrollHeight")
            clip = {"x": 0, "y": 0, "width": width, "height": min(tall, LONGEST)}
            tab.screenshot(path=out / f"{name}-{where}-whole.png", full_page=True, clip=clip)
            troubles += _barriers(tab, width)
            look.troubles += [f"{where}: {each}" for each in troubles]
            context.close()
    look.pages = _printed(browser, file, out / f"{name}.pdf")
    return look


def _listen(tab: Any) -> list[str]:
    """Returns the list that the page's messages and requests will be in; it should have none."""
    troubles: list[str] = []
    tab.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))

    def requested(request: Any) -> None:
        if not request.url.startswith(("file:", "blob:", "data:")):
            troubles.append(f"request: {request.url}")

    tab.on("request", requested)
    return troubles


def _opened(tab: Any, file: Path) -> float:
    """Opens a page. Returns the seconds until the charts in sight were drawn."""
    began = time.perf_counter()
    tab.goto(file.resolve().as_uri())
    tab.wait_for_selector("html[data-ic-ready=yes]")
    opened_s = time.perf_counter() - began
    tab.wait_for_timeout(300)  # what fades in
    return opened_s


def _draw_all(tab: Any) -> None:
    """Goes through a page once, since charts are drawn when they come into sight."""
    tall, step = tab.evaluate("[document.documentElement.scrollHeight, innerHeight]")
    for top in range(0, min(tall, LONGEST), step):
        tab.evaluate(f"scrollTo(0, {top})")
        tab.wait_for_timeout(120)
    tab.evaluate("scrollTo(0, 0)")
    tab.wait_for_timeout(300)


def _barriers(tab: Any, width: int) -> Iterator[str]:
    """Yields what is wider than the screen, and what axe complains of."""
    from axe_playwright_python.sync_playwright import Axe

    wide = tab.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        yield f"the page is {wide} px wide"
    for rule in Axe().run(tab).response["violations"]:
        yield f"axe: {rule['id']}: {rule['nodes'][0]['html'][:120]} ({len(rule['nodes'])} times)"


def _printed(browser: Any, file: Path, pdf: Path) -> int:
    """Prints a page as a reader does who has just opened it. Returns the number of sheets."""
    tab = browser.new_page(viewport={"width": 1024, "height": SCREENS[1024]})
    tab.set_default_timeout(PATIENCE_MS)
    _opened(tab, file)
    _draw_all(tab)
    tab.pdf(path=pdf, format="A4")
    tab.close()
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


def main() -> int:
    """Photographs. Returns the exit code."""
    parser = argparse.ArgumentParser(description="photograph pages at each size and colour, and on paper")
    parser.add_argument("pages", type=Path, metavar="PAGE", nargs="+", help="a page, or the directory of a run")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="(default: %(default)s)")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    arguments.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for given in arguments.pages:
            look = look_at(browser, *page_of(given, arguments.out), arguments.out)
            print(
                f"{look.name}: opened in {look.opened_s:.1f} s, {look.pages} sheets of A4,"
                f" {len(look.troubles)} troubles"
            )
            for trouble in look.troubles:
                print(f"  {trouble}")
            wrong += len(look.troubles)
        browser.close()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
