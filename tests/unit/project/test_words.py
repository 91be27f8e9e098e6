# SPDX-License-Identifier: BSD-3-Clause
"""The words of the project: the documents are short, and nothing has a name that the glossary excludes.

A word of a document is what `wc -w` counts. What the code knows is made when the site is built, and counts nowhere.

python tests/unit/project/test_words.py lists the words by document, and how often each habit stands where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: Of README and docs/. Say a new fact once, and cut what it makes superfluous.
MOST = 38_900
MOST_OF_README = 900

GLOSSARY = ROOT / "docs" / "contributing" / "glossary.md"
#: Where text is ours: folder and endings.
PLACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "package": ("pytest_icbench", (".py", ".json", ".js", ".toml")),
    "C": ("workload/src", (".c", ".h")),
    "docs": ("docs", (".md", ".sh", ".toml", ".py")),
}
#: Words that the glossary excludes, in names, keys, options and prose. What may stand there all the same is a part of
#: case ids, of another program's language, or an English verb.
EXCLUDED: Mapping[str, str] = {
    "start-up": r"(?<![-|a-z])birth(?!:)s?|(?<![a-z])born(?![a-z])|unborn",
    "noisy neighbour": r"icbench[-_]neighbour|(?<!noisy_)neighbour_(?:use|cpus|mib)|(?<!Noisy)Neighbour(?:Use|Effect)",
    "candidate": r"(?i)contender|icbench[-_]variant|options\.variant",
    "mode": r"(?i)(?<![a-z-])variants?(?![a-z-])",
    "flagged": r"(?i)accus(?:e|ing|ation)|acquit",
    "possible regression": r"(?i)(?<![a-z])suspects?(?![a-z])",
    "retest": r"(?i)second looks?",
    "undetermined": r"(?i)untold",
    "host noise": r"(?i)(?<![a-z])moods?(?![a-z])",
    "other processes": r"(?i)(?<![a-z])others took",
    "ACL drop": r"(?i)denials?(?![a-z])|(?<![a-z])denied_|_denied|--(?:peer-)?denied|struct denied|\.denied\b",
    "CPU share, CPU quota": r"CpuContract|by_contract|icbench[-_](?:share|cap)\b",
    "check_payload": r"--touch|icbench[-_]touch|\.touch\b(?!\()",
    "rebuild": r"icbench[-_]fresh|settings\.fresh|options\.fresh",
    "must_match": r"icbench[-_]incomparable|--incomparable|options\.incomparable",
    "attached": r"class Existing|\bExisting\(|\.existing\b",
    "independent check": r"(?i)(?<![a-z])witness",
    "comparability": r"(?i)circumstances",
}
#: Habits of prose that have a plain sense, too, and how often they may stand in each place: fewer are welcome.
HABITS: Mapping[str, tuple[int, int, int]] = {
    "told": (6, 1, 3),
    "tells": (15, 0, 2),
    "beside": (58, 0, 28),
    "behind": (31, 11, 12),
    "beyond": (22, 4, 7),
    "of its own": (22, 0, 8),
    "of their own": (4, 0, 4),
    "so many": (15, 0, 1),
    "the others": (12, 3, 4),
    "of which": (18, 2, 4),
}


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def words() -> dict[str, int]:
    """The words of each document, the longest first."""
    counted = {str(each.relative_to(ROOT)): len(each.read_text(encoding="utf-8").split()) for each in documents()}
    return dict(sorted(counted.items(), key=lambda item: -item[1]))


def files(place: str) -> Iterator[Path]:
    """The files of a place, without the glossary, which names what it excludes."""
    folder, endings = PLACES[place]
    yield from (file for file in sorted((ROOT / folder).rglob("*")) if file.suffix in endings and file != GLOSSARY)
    yield from ((ROOT / "README.md", ROOT / "CONTRIBUTING.md") if place == "docs" else ())


def habits(place: str) -> dict[str, int]:
    """How often each habit stands in a place, also across the end of a line of a comment."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in files(place))
    breaks = r"\s+(?:(?:#:?|\*)\s+)?"
    return {
        habit: len(re.findall(rf"(?i)(?<![A-Za-z_]){habit.replace(' ', breaks)}(?![A-Za-z_])", text))
        for habit in HABITS
    }


def test_the_documents_are_short() -> None:
    counted = words()
    longest = ", ".join(f"{name} {number}" for name, number in list(counted.items())[:5])
    assert sum(counted.values()) <= MOST, f"the longest: {longest}"
    assert counted["README.md"] <= MOST_OF_README


@pytest.mark.parametrize("place", PLACES)
def test_nothing_has_a_word_that_the_glossary_excludes(place: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: '{match[0]}': the glossary's word is {term}"
        for file in files(place)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        for term, pattern in EXCLUDED.items()
        if (match := re.search(pattern, line)) is not None
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["veth-birth:netns:1000-1vs1-Rmax", "(?:app|birth):", "Permission denied", "invariant"]
)
def test_parts_of_ids_and_of_other_words_are_no_findings(text: str) -> None:
    assert [term for term, pattern in EXCLUDED.items() if re.search(pattern, text)] == []


@pytest.mark.parametrize("text", ["birth_ns", "--icbench-variant ovs:new=x", "in a second look", "w->denied_due"])
def test_words_of_the_dialect_are_findings(text: str) -> None:
    assert [term for term, pattern in EXCLUDED.items() if re.search(pattern, text)] != []


@pytest.mark.parametrize("place", PLACES)
def test_habits_of_prose_become_no_more(place: str) -> None:
    index = list(PLACES).index(place)
    more = {habit: count for habit, count in habits(place).items() if count > HABITS[habit][index]}
    assert more == {}


def test_the_glossary_names_what_is_excluded() -> None:
    glossary = GLOSSARY.read_text(encoding="utf-8")
    assert [term for term in EXCLUDED if term not in glossary] == []


if __name__ == "__main__":
    for name, number in words().items():
        print(f"{number:6} {name}")
    print(f"{sum(words().values()):6} of {MOST}")
    counts = {each: habits(each) for each in PLACES}
    for habit in HABITS:
        print(f"{habit:14}", *(f"{counts[place][habit]:5} {place}" for place in PLACES))
