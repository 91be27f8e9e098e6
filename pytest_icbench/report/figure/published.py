# SPDX-License-Identifier: BSD-3-Clause
"""Published results of the experiments that a case repeats, from ``published.json``: orientation, never a limit.

They come from other hardware and other versions, and all reports say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pytest_icbench.model.case import CANDIDATE_KEY, MODE_KEY
from pytest_icbench.model.measurement import Result

#: The remark on every published value.
OTHER_HARDWARE = "other hardware"

#: The technique of a kernel switch's case that does not name one.
_NATURAL_API = {"veth": "udp-mmsg", "linux-bridge": "udp-mmsg"}
#: Axes that no publication varies.
_OF_NONE = ("mix", "flows", "header", "direction", "queues", "routes", "function", "app", "node")
#: The axes of an experiment whose row does not set them.
_DEFAULTS = {
    **dict.fromkeys(_OF_NONE),
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
    """A published rate of a case.

    Attributes:
        row: the row of the experiment.
        value: frames per second.
        source: the publication.
        hardware: the machine on which it was measured.
    """

    row: str
    value: float
    source: str
    hardware: str

    @property
    def label(self) -> str:
        """The row with the remark that the hardware is another."""
        return f"{self.row}, {OTHER_HARDWARE}"


@cache
def _data() -> Mapping[str, Any]:
    text = (files("pytest_icbench.report.figure") / "published.json").read_text(encoding="utf-8")
    data: Mapping[str, Any] = json.loads(text)
    return data


def _axis(result: Result, name: str) -> Any:
    """Returns an axis of a result by its name in ``published.json``."""
    if name in ("metric", "dimension"):
        return result.metric if name == "metric" else result.dimension
    if name == "api":
        return result.point.api or _NATURAL_API.get(result.switch)
    return result.axes.get(name)


def stated(result: Result) -> list[Stated]:
    """Returns the published values of the experiment that a result's case repeats."""
    published = []
    for entry in _data()["figures"]:
        axes = {**_DEFAULTS, **entry["at"]}
        if result.metric != entry["metric"] or not result.figures.SAYS_METRIC:
            continue
        if all(_axis(result, name) == value for name, value in axes.items()):
            source = entry["row"][0]
            data = _data()
            published.append(
                Stated(entry["row"], float(entry["value"]), data["sources"][source], data["hardware"][source])
            )
    return published


def statements(results: Iterable[Result]) -> list[tuple[str, str, str]]:
    """Returns the publications' statements on experiments as rows: row, text, source.

    A statement that compares switches or kinds of containers is returned only if the results have two or more of them.
    """
    matches = []
    all_results = list(results)
    for entry in _data()["statements"]:
        axes = {"remote": [False], **{name: [False] for name in _OF_NONE}, **entry["at"]}
        matching = [
            result
            for result in all_results
            if all((_axis(result, name) or False) in values for name, values in axes.items())
        ]
        kinds = {(result.switch, str(_axis(result, "startup")).partition(":")[0]) for result in matching}
        compares = "switch" in entry["at"] or entry["at"].get("dimension") == ["startup"]
        if len(kinds) >= (2 if compares else 1):
            matches.append((entry["row"], entry["text"], _data()["sources"][entry["row"][0]]))
    return matches
