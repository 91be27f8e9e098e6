# SPDX-License-Identifier: BSD-3-Clause
"""``thresholds.toml``: limits by case.

Tables are keyed by patterns (``*``, ``?``, ``[...]``) over case ids; for each key the last table that matches wins.
A key is ``min_`` or ``max_`` and the name of a result, or about the baseline (``gate.margins``)::

    ["*"]
    max_frame_loss_ratio = 0.9
    allowance = 0.05

    ["ovs-64B-*"]
    min_throughput_pps = 2_000_000
    allowance_rtt_p99_ns = 0.2

A limit on a round trip may be the name of a latency budget: twice its one-way latency. The budgets are the functional
splits of a radio access network, with the numbers of 3GPP TR 38.801 V14.0.0, annex A, table A-1: the greatest one-way
latency between the two units, and the data rates down and up for its reference cell (100 MHz, 8 layers, 32 antenna
ports, 256QAM down and 64QAM up). Of a range the strict end stands here: 1.5 of 1.5 to 10 ms, and the least rate. Split
5 has "hundreds of microseconds" there, and split 3 a rate "lower than option 2".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import translate
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.limits import LIMITABLE, Limit
from pytest_icbench.gate.margins import KEYS, Margins, explain_refusal
from pytest_icbench.model.text_files import TomlFile, parse_toml, read_toml
from pytest_icbench.wording import suggestion


class Budget(NamedTuple):
    """A functional split.

    Attributes:
        name: as in thresholds.
        between: the layers above and below it.
        one_way_ns: the greatest latency from one unit to the other.
        gbps: data rates down and up.
    """

    name: str
    between: str
    one_way_ns: float
    gbps: tuple[float, float]

    @property
    def round_trip_ns(self) -> float:
        """The limit on a round trip between the units."""
        return 2 * self.one_way_ns


SPLITS = (
    Budget("split-1", "RRC and PDCP", 10e6, (4.0, 3.0)),
    Budget("split-2", "PDCP and RLC", 1.5e6, (4.016, 3.024)),
    Budget("split-3", "high and low RLC", 1.5e6, (4.016, 3.024)),
    Budget("split-4", "RLC and MAC", 100e3, (4.0, 3.0)),
    Budget("split-5", "high and low MAC", 100e3, (4.0, 3.0)),
    Budget("split-6", "MAC and PHY", 250e3, (4.133, 5.64)),
    Budget("split-7a", "high and low PHY", 250e3, (10.1, 16.6)),
    Budget("split-7b", "high and low PHY", 250e3, (37.8, 53.8)),
    Budget("split-7c", "high and low PHY", 250e3, (10.1, 53.8)),
    Budget("split-8", "PHY and RF", 250e3, (157.3, 157.3)),
)
#: By name.
BUDGETS = {budget.name: budget for budget in SPLITS}
_WILD = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class Table:
    """The limits and margins below one pattern."""

    pattern: str
    limits: tuple[Limit, ...] = ()
    margins: tuple[tuple[str, tuple[float, str]], ...] = ()


@dataclass(frozen=True)
class Thresholds:
    """The tables of one file, in its order."""

    tables: tuple[Table, ...] = ()
    file: TomlFile | None = field(default=None, repr=False, compare=False)
    #: Tables with wildcards, and by id those about one case: a file may have thousands of the latter.
    _wild: list[tuple[int, re.Pattern[str]]] = field(init=False, repr=False, compare=False, default_factory=list)
    _plain: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for place, table in enumerate(self.tables):
            if _WILD.search(table.pattern):
                self._wild.append((place, re.compile(translate(table.pattern))))
            else:
                self._plain[table.pattern] = place

    def _matching(self, ids: tuple[str, ...]) -> list[Table]:
        places = {place for place, pattern in self._wild if any(map(pattern.match, ids))}
        places.update(self._plain[case_id] for case_id in ids if case_id in self._plain)
        return [self.tables[place] for place in sorted(places)]

    def for_case(self, *ids: str) -> tuple[Limit, ...]:
        """Returns the limits of a case: for each key that of the last table whose pattern matches.

        ``ids``: the ``Case.ids``; a pattern matches if it matches any of them.
        """
        limits: dict[tuple[str, str], Limit] = {}
        for table in self._matching(ids):
            limits.update({(limit.kind, limit.name): limit for limit in table.limits})
        return tuple(limits.values())

    def margins(self, *ids: str) -> Margins:
        """Returns the margins of a case against its baseline; tables are chosen as in ``for_case``."""
        return Margins({key: value for table in self._matching(ids) for key, value in table.margins})

    def unmatched(self, ids: Collection[str]) -> list[str]:
        """Returns the patterns that match none of these ids."""
        alone = {self.tables[place].pattern for pattern, place in self._plain.items() if pattern not in ids}
        wild = {self.tables[place].pattern for place, pattern in self._wild if not any(map(pattern.match, ids))}
        return [table.pattern for table in self.tables if table.pattern in alone | wild]


def load(path: Path) -> Thresholds:
    """Reads a file. Raises UsageError that names file, table and key."""
    file = read_toml(path)
    return Thresholds(tuple(_table(*table, str(path)) for table in file.data.items()), file)


def parse(text: str, where: str) -> Thresholds:
    """Parses TOML. Raises UsageError that begins with ``where``."""
    return Thresholds(tuple(_table(*table, where) for table in parse_toml(text, where).items()))


def _budget(name: str, at: str) -> float:
    if name not in BUDGETS:
        raise UsageError(f"{at}: there is no latency budget '{name[:40]}'{suggestion(name, tuple(BUDGETS))}")
    return BUDGETS[name].round_trip_ns


def _table(pattern: str, table: Any, where: str) -> Table:
    if not isinstance(table, dict):
        raise UsageError(f'{where}: {pattern} stands outside a table; put it below a pattern such as ["*"]')
    limits: list[Limit] = []
    margins = []
    for key, value in table.items():
        at = f'{where}: ["{pattern}"] {key}'
        kind, _, name = key.partition("_")
        if key not in KEYS and (kind not in ("min", "max") or name not in LIMITABLE):
            known = tuple(f"{kind if kind in ('min', 'max') else 'min'}_{result}" for result in LIMITABLE)
            hint = suggestion(key, (*known, *KEYS), "; write min_ or max_ and the name of a result")
            raise UsageError(f"{at}: there is no such limit{hint}")
        if isinstance(value, str) and kind == "max" and name.startswith("rtt_") and name.endswith("_ns"):
            value = _budget(value, at)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise UsageError(f"{at}: {value!r} is no finite number")
        if key in KEYS:
            wrong = explain_refusal(key, value)
            if wrong is not None:
                raise UsageError(f"{at}: {value!r} {wrong}")
            margins.append((key, (float(value), at)))
        else:
            way: Literal["min", "max"] = "min" if kind == "min" else "max"
            limits.append(Limit(name, way, float(value), at))
    return Table(pattern, tuple(limits), tuple(margins))
