# SPDX-License-Identifier: BSD-3-Clause
"""What the published experiments state about a case, from ``published.json``: orientation, never an assertion.

They come from other hardware and other versions, and everything that shows them says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pytest_icbench.model.case import CANDIDATE_KEY, MODE_KEY
from pytest_icbench.model.result import Result

#: Said wherever a published figure is shown.
OTHER_HARDWARE = "other hardware"

#: The technique of a kernel switch's case that names none.
_NATURAL_API = {"veth": "udp-mmsg", "linux-bridge": "udp-mmsg"}
#: What an experiment is about where its row does not say otherwise.
_DEFAULTS = {
    "pairs": 1,
    "rate": None,
    "port": None,
    MODE_KEY: None,
    CANDIDATE_KEY: None,
    "switch_cores": None,
    "remote": False,
}


@dataclass(frozen=True, slots=True)
class Stated:
    """A published rate that belongs to a case: ``row`` of the experiment, and frames per second."""

    row: str
    value: float
    source: str
    hardware: str

    @property
    def label(self) -> str:
        return f"{self.row}, {OTHER_HARDWARE}"


@cache
def _data() -> Mapping[str, Any]:
    text = (files("pytest_icbench.report.figure") / "published.json").read_text(encoding="utf-8")
    data: Mapping[str, Any] = json.loads(text)
    return data


def _axis(result: Result, name: str) -> Any:
    """An axis that the file of published figures names."""
    if name in ("metric", "dimension"):
        return result.metric if name == "metric" else result.dimension
    if name == "api":
        return result.point.api or _NATURAL_API.get(result.switch)
    return result.axes.get(name)


def stated(result: Result) -> list[Stated]:
    """Published figures of the same experiment as a result's case."""
    found = []
    for entry in _data()["figures"]:
        wanted = {**_DEFAULTS, **entry["at"]}
        if result.metric != entry["metric"] or result.dimension != "throughput":
            continue
        if all(_axis(result, name) == value for name, value in wanted.items()):
            source = entry["row"][0]
            data = _data()
            found.append(
                Stated(
                    entry["row"],
                    float(entry["value"]),
                    data["sources"][source],
                    data["hardware"][source],
                )
            )
    return found


def statements(results: Iterable[Result]) -> list[tuple[str, str, str]]:
    """What the publications say in words about experiments of which there are results: row, text, source."""
    found = []
    every = list(results)
    for entry in _data()["statements"]:
        wanted = {"remote": [False], **entry["at"]}
        matching = [result for result in every if all((_axis(result, k) or False) in v for k, v in wanted.items())]
        if len({_axis(result, "switch") for result in matching}) >= 2:
            found.append((entry["row"], entry["text"], _data()["sources"][entry["row"][0]]))
    return found
