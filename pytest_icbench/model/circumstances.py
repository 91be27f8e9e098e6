# SPDX-License-Identifier: BSD-3-Clause
"""Whether two results may be compared: which of the facts around them have to be the same. Pure.

Facts have names with dots: ``identity.cpu_model``, ``treatment.kernel_parameters.isolcpus``, ``placement``. A list of
patterns says which of them must match; by default the host, the placement, what the rate is and the kind of node. What
is tested, ``treatment``, is expected to differ, and ``conditions`` only warn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from pytest_icbench.errors import UsageError

#: Facts that make results incomparable where they differ.
DEFAULT = ("identity.*", "placement", "metric", "rules", "treatment.node")
#: First parts of the names of facts.
SOURCES = ("identity", "treatment", "conditions", "settings", "placement", "metric", "rules")


class Circumstances(Protocol):
    """What a measurement and a baseline's entry have in common: the facts around the figures."""

    @property
    def placement(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def rules(self) -> int: ...
    @property
    def identity(self) -> Mapping[str, Any]: ...
    @property
    def treatment(self) -> Mapping[str, Any]: ...
    @property
    def conditions(self) -> Mapping[str, Any]: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs; None for a side that does not have it."""

    fact: str
    here: Any
    there: Any

    def __str__(self) -> str:
        return f"{self.fact} is {_shown(self.here)} here and {_shown(self.there)} there"


def _shown(value: Any) -> str:
    return "unknown" if value is None else str(value)


def parse_patterns(text: str, where: str) -> tuple[str, ...]:
    """``identity.* !identity.memory_gib treatment.kernel``. Raises UsageError for a fact that no result has."""
    patterns = tuple(text.replace(",", " ").split())
    for pattern in patterns:
        source = pattern.removeprefix("!").partition(".")[0]
        if not any(fnmatchcase(name, source) for name in SOURCES):
            raise UsageError(f"{where}: '{pattern}' names no fact; facts begin with {', '.join(SOURCES)}")
    return patterns


def facts(result: Circumstances) -> dict[str, Any]:
    """All facts around a result, by name."""
    found: dict[str, Any] = {"placement": result.placement, "metric": result.metric, "rules": result.rules}
    for source in ("identity", "treatment", "conditions", "settings"):
        _flatten(source, getattr(result, source), found)
    return found


def _flatten(name: str, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            _flatten(f"{name}.{key}", part, found)
    elif value != {}:
        found[name] = value


def matches(fact: str, patterns: Sequence[str]) -> bool:
    """Whether the fact has to be the same: the last pattern that fits decides, ``!`` takes it out again."""
    decided = False
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        if fnmatchcase(fact, plain) or fact.startswith(f"{plain}."):
            decided = not pattern.startswith("!")
    return decided


def all_differences(here: Circumstances, there: Circumstances) -> list[Difference]:
    """All facts that differ, in the order of their names. A fact that one side lacks differs."""
    own: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for source in SOURCES:
        _flatten_differing(source, getattr(here, source), getattr(there, source), own, other)
    return [
        Difference(name, own.get(name), other.get(name))
        for name in sorted(own.keys() | other.keys())
        if own.get(name) != other.get(name)
    ]


def _flatten_differing(name: str, here: Any, there: Any, own: dict[str, Any], other: dict[str, Any]) -> None:
    """As ``facts``, without the parts that are the same: most are, and thousands of results are compared at once."""
    if here == there:
        return
    if isinstance(here, Mapping) and isinstance(there, Mapping) and here and there:
        for key in here.keys() | there.keys():
            _flatten_differing(f"{name}.{key}", here.get(key, {}), there.get(key, {}), own, other)
        return
    _flatten(name, here, own)
    _flatten(name, there, other)


def differences(here: Circumstances, there: Circumstances, patterns: Sequence[str] = DEFAULT) -> list[Difference]:
    """The facts that differ and should not."""
    return [each for each in all_differences(here, there) if matches(each.fact, patterns)]


def incomparable(here: Circumstances, there: Circumstances, patterns: Sequence[str] = DEFAULT) -> str | None:
    """The reason of INCOMPARABLE: one sentence with every fact that differs; None if the two may be compared."""
    found = differences(here, there, patterns)
    return "; ".join(map(str, found)) if found else None
