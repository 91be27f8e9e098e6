# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the page that are made from the records.

The summary stands in the file, between `<!-- summary -->` and `<!-- end summary -->`. The site has the others, too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from validation.model import Claim, Record, Row

#: Number of rows of one measure from which the page has one row for them; their record has all.
FEWEST = 3
_SIGN = {"holds": "✓ holds", "fails": "✗ **fails**", "not shown": "not shown"}


def generate(text: str, claims: Mapping[str, Claim], records: Mapping[str, Record]) -> str:
    """The page with its summary made anew. Raises ValueError if it lacks the marks of it."""
    marks = re.compile(r"(<!-- summary -->\n).*?(<!-- end summary -->)", re.DOTALL)
    if not marks.search(text):
        raise ValueError("the page has no part between <!-- summary --> and <!-- end summary -->")
    return marks.sub(lambda found: f"{found[1]}{summary(claims, records)}\n{found[2]}", text)


def summary(claims: Mapping[str, Claim], records: Mapping[str, Record]) -> str:
    """One line a claim."""
    lines = ["| claim | | bounds kept | took, s | on | record |", "| --- | --- | --- | --- | --- | --- |"]
    for name, claim in claims.items():
        record = records.get(name)
        link = f"[{claim.TITLE}](#{anchor(claim.TITLE)})"
        if record is None:
            lines.append(f"| {link} | {_SIGN['not shown']} | | | | |")
            continue
        bounds = [row.held for row in record.rows if row.bound]
        kept = f"{sum(bounds)} of {len(bounds)}"
        found = f"{_SIGN[record.state]} | {kept} | {record.duration_s:.0f} | {record.date}"
        lines.append(f"| {link} | {found} | [{name}](validation/{name}.json) |")
    return "\n".join(lines)


def anchor(heading: str) -> str:
    """Anchor that a renderer gives to a heading."""
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")


def sections(claims: Mapping[str, Claim], records: Mapping[str, Record]) -> str:
    """A section a claim: what is claimed, how it is shown, what was found."""
    return "\n\n".join(section(name, claim, records.get(name)) for name, claim in claims.items())


def section(name: str, claim: Claim, record: Record | None) -> str:
    """The claim, its bounds and its charts. How it is shown, and what has no bound, is folded."""
    parts = [f"### {claim.TITLE}", f"**Claimed.** {claim.CLAIM}"]
    if record is None:
        return "\n\n".join(
            [*parts, f'Not run yet: `make validate ARGS="--only {name}"`.', folded(claim.METHOD.strip())]
        )
    if record.missing is not None:
        return "\n\n".join([*parts, f"**Not shown here:** {record.missing}", folded(claim.METHOD.strip())])
    bounded, others = ([row for row in record.rows if bool(row.bound) is bound] for bound in (True, False))
    parts += [table(bounded), f"[Every value](validation/{name}.json)"]
    for figure, caption in claim.FIGURES.items():
        parts.append(f"![{figure}](validation/{name}-{figure}.svg)\n\n*{caption}*")
    notes = "\n".join(f"* {note}" for note in record.notes)
    parts.append(folded(claim.METHOD.strip(), table(others) if others else "", notes))
    return "\n\n".join(parts)


def folded(*parts: str) -> str:
    """Markdown that a reader opens by a click."""
    inside = "\n\n".join(filter(None, parts))
    return f'<details markdown="1">\n<summary>How it is shown</summary>\n\n{inside}\n\n</details>'


def table(rows: Sequence[Row]) -> str:
    """The values; columns that nothing stands in are left out. Rows that differ by their numbers alone are one."""
    cells = [("value", "measured", "interval", "bound", "")]
    for alike in groups(rows):
        cells.append(alone(alike[0]) if len(alike) < FEWEST else together(alike))
    filled = [column for column in range(5) if column in (0, 1) or any(row[column] for row in cells[1:])]
    texts = [[row[column].replace("|", "\\|") for column in filled] for row in cells]
    texts.insert(1, ["---"] * len(filled))
    return "\n".join("| " + " | ".join(row) + " |" for row in texts)


def groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one measure and one bound, together if they are many; one that failed stands alone."""
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault(measure(row), []).append(row)
    found = []
    for row in rows:
        reported = first_number(row.value) is not None or row.bound
        group = [other for other in alike[measure(row)] if other.held and reported]
        if len(group) < FEWEST or not row.held:
            found.append([row])
        elif row is group[0]:
            found.append(group)
    return found


def measure(row: Row) -> tuple[str, str]:
    """What a row has in common with others: its measure, without numbers and names, and its bound."""
    what = row.what.rpartition(": ")[2]
    of_text = "each" if row.bound else "undetermined"
    return (re.sub(r"`[^`]*`|[\d.,]*\d", "#", what), row.bound if first_number(row.value) is not None else of_text)


def alone(row: Row) -> tuple[str, str, str, str, str]:
    """The cells of a row."""
    interval = ""
    if row.low is not None and row.high is not None:
        interval = f"{shown(row.low)} to {shown(row.high)}"
        interval += f" ({row.coverage * 100:.1f} %)" if row.coverage is not None else ""
    return row.what, shown(row.value), interval, row.bound, ("✓" if row.held else "✗") if row.bound else ""


def together(rows: Sequence[Row]) -> tuple[str, str, str, str, str]:
    """The cells of rows that differ by numbers and names alone: their number, and the range of their values."""
    patterns = {re.sub(r"[\d.,]*\d", "…", row.what) for row in rows}
    words = [row.what.split() for row in rows]
    begin, end = common(words), common([list(reversed(each)) for each in words])[::-1]
    shortest = len(min(words, key=len))
    what = patterns.pop() if len(patterns) == 1 else " ".join([*begin, "…", *end[-max(shortest - len(begin), 1) :]])
    numbers = [(number, row.value) for row in rows if (number := first_number(row.value)) is not None]
    ends = [shown(choose(numbers, key=lambda pair: pair[0])[1]).split()[0] for choose in (min, max) if numbers]
    measured = " to ".join(dict.fromkeys(ends))
    bounds = list(dict.fromkeys(row.bound for row in rows))
    bound = bounds[0] if len(bounds) == 1 else "one each"
    return f"{what} ({len(rows)} values)", measured, "", bound, "✓" if bound else ""


def common(words: Sequence[Sequence[str]]) -> list[str]:
    """The words with which all begin."""
    return [first[0] for first in itertools.takewhile(lambda same: len(set(same)) == 1, zip(*words, strict=False))]


def first_number(value: Any) -> float | None:
    """A number, or the one with which a text of one value begins; None for a text with several."""
    if isinstance(value, int | float):
        return float(value)
    match = re.match(r"-?[\d.]+(?=%?( |$))(?! (/|of|[A-Z]{2}))", str(value))  # counts of verdicts are several
    return float(match[0]) if match else None


def shown(value: Any) -> str:
    """Counts in full, other numbers with five significant digits, text as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    digits = f"{value:,.5g}"
    return f"{value:,.0f}" if "e+" in digits else digits


def hosts(records: Mapping[str, Record]) -> str:
    """The facts of each different host that the records come from."""
    different: list[tuple[dict[str, Any], list[str]]] = []
    for name, record in records.items():
        for facts, names in different:
            if facts == record.host:
                names.append(name)
                break
        else:
            different.append((record.host, [name]))
    tables = []
    for facts, names in different:
        lines = [f"Of {', '.join(names)}:", "", "| fact | |", "| --- | --- |"]
        lines += [f"| {key} | {value} |" for key, value in facts.items()]
        tables.append("\n".join(lines))
    return "\n\n".join(tables)
