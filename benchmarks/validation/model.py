# SPDX-License-Identifier: BSD-3-Clause
"""What a claim is, what was found about it, and its form in docs/explanation/validation/CLAIM.json."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_icbench.host.host_session import SessionOptions
from pytest_icbench.model.codec import DamagedData, decode, encode
from pytest_icbench.stats.quantiles import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 1
State = Literal["holds", "fails", "not shown"]


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure beside its bound.

    Attributes:
        what: which figure, with its unit (``p50 shift at 100 µs, µs``).
        value: as measured; text for what is no number.
        low, high, coverage: its interval, where it has one.
        bound: in words, empty for a figure that is only reported.
        held: whether the bound is kept; true for one that is only reported.
    """

    what: str
    value: Any
    bound: str = ""
    held: bool = True
    low: float | None = None
    high: float | None = None
    coverage: float | None = None

    @classmethod
    def of(cls, what: str, estimate: Estimate, bound: str = "", *, held: bool = True) -> Row:
        """An estimate with its interval."""
        return cls(what, estimate.value, bound, held, estimate.low, estimate.high, estimate.coverage)


@dataclass(frozen=True, slots=True)
class Found:
    """What a claim's ``check`` returns.

    Attributes:
        rows: the figures, in the order in which they are shown.
        data: what ``draw`` needs, plain JSON data; keep it small, it is in the repository.
        notes: one sentence each: what could not be run here and why, shares of windows that were left out, ...
    """

    rows: tuple[Row, ...]
    data: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """A claim as it was found on one host: what docs/explanation/validation/CLAIM.json holds.

    Attributes:
        duration_s: of the whole check.
        date: day on which it ran (UTC).
        host: facts about the machine and the software; see ``facts.py``.
        missing: why the claim could not be tried; then there are no rows.
    """

    claim: str
    date: str
    duration_s: float
    host: dict[str, Any]
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    missing: str | None = None

    @property
    def state(self) -> State:
        """A claim holds if it has bounds and all are kept."""
        if not any(row.bound for row in self.rows):
            return "not shown"
        return "holds" if all(row.held for row in self.rows) else "fails"

    def write(self, directory: Path) -> None:
        """Into ``directory/CLAIM.json``."""
        text = json.dumps({"schema": SCHEMA, **encode(self)}, indent=1, ensure_ascii=False, allow_nan=False)
        (directory / f"{self.claim}.json").write_text(_compact(text) + "\n")

    @classmethod
    def read(cls, file: Path) -> Record:
        """Inverse of ``write``. Raises DamagedData."""
        try:
            data = json.loads(file.read_text())
        except ValueError as error:
            raise DamagedData(f"{file.name}: not valid JSON ({error})") from None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise DamagedData(f"{file.name}: not of schema {SCHEMA}; run the claim again")
        return decode(cls, data, file.name)


def _compact(text: str) -> str:
    """Lists of plain numbers on one line: a figure's points are read by programs, and a diff by people."""
    lines: list[str] = []
    run: list[str] | None = None
    for line in text.split("\n"):
        word = line.strip()
        if run is not None and word in ("]", "],"):
            lines[-1] += ", ".join(part.rstrip(",") for part in run) + word
            run = None
        elif run is not None and word[-1:] not in "[{":
            run.append(word)
        elif run is not None:  # no plain list after all
            indent = " " * (len(lines[-1]) - len(lines[-1].lstrip()) + 1)
            lines += [indent + part for part in run]
            lines.append(line)
            run = [] if word.endswith("[") else None
        else:
            lines.append(line)
            run = [] if word.endswith("[") else None
    return "\n".join(lines)


class Claim(Protocol):
    """What a module in ``claims/`` has."""

    #: Heading of its section.
    TITLE: str
    #: What is claimed: one or two sentences, with the bound.
    CLAIM: str
    #: How it is shown: paragraphs of Markdown.
    METHOD: str
    #: Seconds that a full run takes on a small machine, for the plan.
    SECONDS: float
    #: Its figures: name to caption. The file is CLAIM-NAME.svg.
    FIGURES: Mapping[str, str]

    def check(self, settings: Settings) -> Found:
        """Measures. Raises Unsupported if this host cannot try it at all."""

    def draw(self, name: str, figure: Figure, data: Mapping[str, Any]) -> None:
        """Draws one of ``FIGURES`` from ``Found.data`` alone, so that it can be drawn again without measuring."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a claim is checked.

    Attributes:
        quick: to see whether a module works: a fraction of the time, figures that mean nothing.
        node: ``lxc`` or ``netns``: where workloads run.
        seed: of everything random.
        binaries: the user's paths of switches that are not on PATH, by switch.
    """

    quick: bool = False
    node: str = "lxc"
    seed: int = 20260801
    binaries: Mapping[str, Path] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    @property
    def session_options(self) -> SessionOptions:
        """The options of a session with the user's binaries."""
        return SessionOptions(binaries={name: str(path) for name, path in self.binaries.items()})

    def amount(self, full: float, quick: float) -> float:
        """A length in seconds, or a number."""
        return quick if self.quick else full

    def count(self, full: int, quick: int) -> int:
        """How many of something."""
        return quick if self.quick else full

    def tell(self, text: str) -> None:
        """Progress, to stderr, with the seconds since the claim began."""
        print(f"  {time.monotonic() - self._began:6.1f} s  {text}", file=sys.stderr, flush=True)


def worst(rows: Sequence[Row]) -> Row | None:
    """The first row whose bound is not kept."""
    return next((row for row in rows if not row.held), None)
