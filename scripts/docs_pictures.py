# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures of the documents from a stored run, in Chromium: python scripts/docs_pictures.py RUN [--out DIR].

RUN is the directory of a demo (``reports/latest``). Its page is written anew, so that a picture shows the page of this
version. Numbers on a picture are those of the headings in docs/tutorials/read-the-report.md.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_icbench.cli.main import main as icbench

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HEIGHT = 1400, 900
#: What a reader on a slow line waits for.
LARGEST_BYTES = 200_000
QUALITY = 80

#: The parts of the page by the number of the step that reads them.
FIRST_SCREEN = {1: "#ic-head", 2: ".ic-tiles", 3: ".ic-sentences", 4: "#ic-first"}
ONE_CASE = {5: "#ic-case-body dl", 6: "#ic-case-body svg"}

#: Puts a number at the upper left corner of each element. Returns the selectors that nothing matches.
_MARK = """marks => Object.entries(marks).filter(([number, selector]) => {
  const part = document.querySelector(selector);
  if (!part) return true;
  const box = part.getBoundingClientRect(), badge = document.createElement("b");
  badge.textContent = number;
  badge.style.cssText = `position:absolute; left:${Math.max(2, box.left + scrollX - 30)}px; top:${box.top + scrollY}px;
    width:24px; height:24px; border-radius:12px; background:#b3005e; color:#fff; font:bold 15px/24px sans-serif;
    text-align:center; z-index:9`;
  document.body.append(badge);
  return false;
}).map(([, selector]) => selector)"""


#: Room for the numbers on the left.
_MARGIN = "document.body.style.paddingLeft = '36px'"


def mark(tab: Any, marks: dict[int, str]) -> None:
    """Numbers parts of the page. Raises SystemExit if the page lacks one."""
    missing = tab.evaluate(_MARK, {str(number): selector for number, selector in marks.items()})
    if missing:
        raise SystemExit(f"the page has no {' and no '.join(missing)}: mend the selectors in {Path(__file__).name}")


def shoot(tab: Any, file: Path, top: float = 0.0) -> None:
    """Writes what the window shows from ``top`` on as WebP. Raises SystemExit if the file is too large."""
    clip = {"x": 0, "y": top, "width": WIDTH, "height": HEIGHT, "scale": 1}
    asked = {"format": "webp", "quality": QUALITY, "clip": clip, "captureBeyondViewport": True}
    picture = tab.context.new_cdp_session(tab).send("Page.captureScreenshot", asked)
    data = base64.b64decode(picture["data"])
    if len(data) > LARGEST_BYTES:
        raise SystemExit(f"{file.name} has {len(data)} bytes, more than {LARGEST_BYTES}: lower QUALITY")
    file.write_bytes(data)
    print(f"{file} ({len(data) // 1000} kB)")


def draw(run: Path, out: Path) -> None:
    """Draws every picture of a run into a directory."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is not here: apt install chromium")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        page = Path(directory) / "report.html"
        if icbench(["report", str(run), "-q", "--html", str(page)]):
            raise SystemExit(f"{run} is no run whose page can be shown")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_selector("svg", timeout=60_000)
        tab.wait_for_timeout(1000)
        shoot(tab, out / "report.webp")
        tab.evaluate(_MARGIN)
        tab.wait_for_timeout(1000)
        mark(tab, FIRST_SCREEN)
        shoot(tab, out / "report-first-screen.webp")
        tab.reload()
        tab.evaluate(_MARGIN)
        tab.wait_for_selector("button.ic-show", state="attached", timeout=60_000)
        tab.locator("button.ic-show").first.evaluate("button => button.click()")
        tab.wait_for_selector("#ic-case-body svg", timeout=60_000)
        tab.wait_for_timeout(1000)
        mark(tab, ONE_CASE)
        top = tab.evaluate("document.querySelector('#ic-one-case').getBoundingClientRect().top + scrollY - 16")
        shoot(tab, out / "report-one-case.webp", top)
        browser.close()


def main() -> int:
    """Draws. Returns the exit code."""
    parser = argparse.ArgumentParser(description="draw the pictures of the documents from a stored run")
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, default=PICTURES, metavar="DIR", help="(default: docs/pictures)")
    arguments = parser.parse_args()
    draw(arguments.run, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
