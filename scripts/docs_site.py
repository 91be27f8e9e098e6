# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of mkdocs: documents outside of ``docs/`` become pages of the site, and links lead to them and back."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import docs_reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

#: The documents outside of ``docs/`` by the name of their page.
OUTSIDE = {
    "project/scenarios.md": "scenarios/README.md",
    "project/benchmarks.md": "benchmarks/README.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changelog.md": "CHANGELOG.md",
}

_PAGE_OF = {path: page for page, path in OUTSIDE.items()}
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the documents that lie elsewhere."""
    for page, path in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_more: object) -> str:
    """Returns the page with the parts that the code knows, and with links as the site needs them."""
    return relinked(docs_reference.built(markdown), page.file.src_uri)


def relinked(markdown: str, page: str) -> str:
    """Returns a page's text with its links between documents as the site needs them.

    Args:
        page: path of the page in the site.
    """
    source = OUTSIDE.get(page, f"docs/{page}")

    def to_page(link: re.Match[str]) -> str:
        opening, target, closing = link.groups()
        if ":" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path not in _PAGE_OF and source.startswith("docs/"):
            return link[0]
        there = _PAGE_OF.get(path, path.removeprefix("docs/"))
        return f"{opening}{posixpath.relpath(there, posixpath.dirname(page) or '.')}{closing}"

    return _LINK.sub(to_page, markdown)
