# SPDX-License-Identifier: BSD-3-Clause
"""The reference has every option and every public member as the code has them; the site needs no network."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, fields
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

from pytest_icbench import api
from pytest_icbench.config.option_table import INI_ONLY, TABLE
from pytest_icbench.model.figures import FIGURES
from pytest_icbench.model.measurement import Measurement

ROOT = Path(__file__).parents[3]


sys.path.insert(0, str(ROOT / "scripts"))
reference: ModuleType = importlib.import_module("docs_reference")
docs_programs: ModuleType = importlib.import_module("docs_programs")


def members(kind: type) -> list[str]:
    own = [base for base in kind.__mro__ if base.__module__.startswith("pytest_icbench")]
    return sorted({name for base in own for name in vars(base) if not name.startswith("_")})


def test_every_option_and_ini_value_has_a_row() -> None:
    table = (reference.options() + "\n" + reference.ini_values()).replace("\\|", "/")
    documented = re.findall(r"^\| `(.+?)(?: .*?)?` \|", table, flags=re.M)
    assert sorted(documented) == sorted([row.option for row in TABLE] + list(INI_ONLY))


def test_a_record_whose_docstring_lacks_a_key_is_an_error() -> None:
    @dataclass
    class Record:
        """A record.

        Attributes:
            seen: what is there.
            gone: what is not.
        """

        seen: int
        kept: int

    with pytest.raises(ValueError, match=r"Record: its docstring lists \['gone', 'kept'\] wrongly"):
        reference.keys_of(Record)


@pytest.mark.parametrize(
    ("row", "reported"),
    [
        ('{0, "drain", "S", KIND_SECONDS, AT(drain_s), 0, 600, "waits for \'stop\', " "or --count"},', None),
        ('{0, "drain", "S", KIND_SECONDS, AT(drain_s), 0, 600, HELP},', "1 options; 0 of them could be read"),
        ('{0, "burst", "N", KIND_U32, AT(burst), 1, NOWHERE, "frames"},', "NOWHERE is no number in a header"),
    ],
)
def test_options_of_the_workload_are_read_from_its_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, row: str, reported: str | None
) -> None:
    (tmp_path / "option").mkdir()
    end = "};\nconst size_t OPTION_ROWS = 1;\nconst struct options OPTION_DEFAULTS = {\n        .drain_s = 2,\n};\n"
    (tmp_path / "option" / "table.c").write_text(f"const struct option_row OPTION_TABLE[] = {{\n{row}\n{end}")
    monkeypatch.setattr(docs_programs, "SOURCE", tmp_path)
    if reported is None:
        assert reference.workload_options().endswith("| `--drain S` | 2 | 0 to 600 | waits for `stop`, or `--count` |")
        return
    with pytest.raises(ValueError, match=reported):
        reference.workload_options()


def test_every_public_name_has_a_heading() -> None:
    assert re.findall(r"^### `(\w+)`$", reference.interface(), flags=re.M) == api.__all__


@pytest.mark.parametrize("kind", [api.Icbench, api.Switch, api.Node])
def test_every_call_has_a_heading_with_its_docstring(kind: type) -> None:
    page = reference.described(kind.__name__)
    functions = [
        name for name in members(kind) if callable(getattr(kind, name)) or isinstance(getattr(kind, name), property)
    ]
    assert len(functions) > 5
    assert [name for name in functions if f"#### `{kind.__name__}.{name}`" not in page] == []


def test_every_attribute_of_a_driver_is_described() -> None:
    page = reference.described("Switch")
    assert [name for name in members(api.Switch) if not re.search(rf"`[\w., ]*\b{name}\b", page)] == []


def test_every_member_of_a_measurement_is_there() -> None:
    documented = re.findall(
        r"^\| (?:\*\*)?`(\w+)", reference.measurement_fields() + "\n" + reference.measurement_members(), flags=re.M
    )
    named = {*members(Measurement), *(field.name for field in fields(Measurement)), *FIGURES}
    assert set(documented) == named


def test_sections_of_a_docstring_become_lists() -> None:
    text = "Does ``a``\nof it.\n\nArgs:\n    a: one\n        two.\n    b, c: three.\n\nReturns:\n    It,\n    all."
    assert reference.paragraphs(text) == [
        "Does `a` of it.",
        "Args:\n\n* `a`: one two.\n* `b, c`: three.",
        "Returns: It, all.",
    ]


class Requests(HTMLParser):
    """What a browser fetches by itself when it opens a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe"):
            self.fetched.append(values.get("src") or "")
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.fetched.append(values.get("href") or "")


def test_every_part_of_the_site_is_made_of_what_the_code_says() -> None:
    pages = [ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    marks = [mark for page in pages for mark in re.findall(r"<!-- built: (.+?) -->", page.read_text())]
    assert sorted(marks) == sorted(reference.BUILT)
    assert all(part() for part in reference.BUILT.values())


#: What a page of the site has of the code.
MADE = {
    "reference/options.html": "--icbench-budget T",
    "reference/workload.html": "--drain S",
    "explanation/validation.html": "<strong>Claimed.</strong>",
    "explanation/torture.html": "switch killed",
    "project/contributing.html": "make test-all",
}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is missing: pip install 'pytest-icbench[docs]'")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 25
    outside = {url for page in pages for url in Requests(page.read_text()).fetched if re.match(r"(https?:)?//", url)}
    assert outside == set()
    assert not any(re.search(r"url\(['\"]?https?:", sheet.read_text()) for sheet in tmp_path.rglob("*.css"))
    assert (tmp_path / "search" / "search_index.js").exists(), "the search would need a server"
    text = (tmp_path / "reference" / "api.html").read_text()
    assert 'id="icbenchthroughput"' in text
    assert "built:" not in text
    for page, made in MADE.items():
        assert made in (tmp_path / page).read_text(), page
    search_from_disk(tmp_path / "index.html")


#: What people type, and a page among the first answers.
SEARCHES = {
    "waiver": "reference/limits.html",
    "exit code": "how-to/ci.html",
    "exit status": "how-to/ci.html",
    "VM": "how-to/virtual-machines.html",
    "runs differ": "explanation/why-runs-differ.html",
    "container": "how-to/attach.html",
    "pull request": "how-to/ci.html",
    "kubernetes": "how-to/attach.html",
}


def search_from_disk(page: Path) -> None:
    """Types words into the search of a page that no server delivers."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not here: apt install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(page.as_uri())
        for words, expected in SEARCHES.items():
            tab.locator(".md-search__input").focus()
            tab.keyboard.press("Control+A")
            tab.keyboard.type(words, delay=20)
            first = f".md-search-result__item:nth-child(-n+4) > a[href*='{expected}?h={words.split()[0].lower()}']"
            tab.wait_for_selector(first, state="attached", timeout=20_000)
        browser.close()
    assert [url for url in asked if not url.startswith("file:")] == []
