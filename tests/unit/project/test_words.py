# SPDX-License-Identifier: BSD-3-Clause
"""The documents stay short: README, CONTRIBUTING and docs/ have a bound on what a person writes and a reader reads.

A word is a run of characters without a space that has a letter or a digit. Generated parts (between `<!-- NAME -->` and
`<!-- end NAME -->`), other comments and blocks of code do not count; cells of tables written by hand do.

python tests/unit/project/test_words.py lists the words by document.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: The documents had 34,860 when the rule was written. Say a new fact once, and cut what it makes superfluous.
MOST = 34_000

_GENERATED = re.compile(r"^<!-- ([^>]+) -->\n.*?^<!-- end \1 -->$", flags=re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", flags=re.S)
_CODE = re.compile(r"^ *```.*?^ *```$", flags=re.M | re.S)


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def words(text: str) -> int:
    """The words of a document's prose."""
    for left_out in (_GENERATED, _COMMENT, _CODE):
        text = left_out.sub("", text)
    return sum(bool(re.search(r"[^\W_]", run)) for run in text.split())


def test_words_of_prose_count_and_others_do_not() -> None:
    text = """# A title

Three `--more words`, and | a cell |.

<!-- part name -->
| not this |
<!-- end part name -->
<!-- built: nor this -->
  ```toml
  nor = "that"
  ```
* one
"""
    assert words(text) == 2 + 6 + 1


def test_the_documents_are_short() -> None:
    counted = {str(document.relative_to(ROOT)): words(document.read_text(encoding="utf-8")) for document in documents()}
    longest = sorted(counted, key=lambda name: -counted[name])[:5]
    assert sum(counted.values()) <= MOST, f"the longest: {', '.join(f'{name} {counted[name]}' for name in longest)}"


if __name__ == "__main__":
    for each in documents():
        print(f"{words(each.read_text(encoding='utf-8')):6} {each.relative_to(ROOT)}")
    print(f"{sum(words(each.read_text(encoding='utf-8')) for each in documents()):6} of {MOST}")
