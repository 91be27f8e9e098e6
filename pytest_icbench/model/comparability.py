# SPDX-License-Identifier: BSD-3-Clause
"""Decides whether two results may be compared: which of the facts around them have to be the same. Pure.

Facts have names with dots: ``identity.cpu_model``, ``treatment.kernel_parameters.isolcpus``, ``placement``. A list of
patterns says which facts must match: by default the host, the placement, the metric, the rules and the kind of node.
The ``treatment``, which is tested, is expected to differ, and ``conditions`` only warn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from typing import Any, Protocol

from pytest_icbench.errors import UsageError

#: Facts that make results incomparable where they differ.
DEFAULT = ("identity.*", "placement", "metric", "rules", "treatment.node")
#: The first parts of facts' names.
SOURCES = ("identity", "treatment", "conditions", "settings", "placement", "metric", "rules")


class Comparability(Protocol):
    """The facts around the figures, which a measurement and a baseline's entry have in common."""

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
    """A fact that differs between two results; None where a result does not have it."""

    fact: str
    here: Any
    there: Any

    def __str__(self) -> str:
        here, there = self.here, self.there
        if isinstance(here, list | tuple) and isinstance(there, list | tuple):
            here, there = _unlike([str(word) for word in here], [str(word) for word in there]) or (here, there)
        return f"{self.fact} is {_shown(here)} here and {_shown(there)} there"


def _shown(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _unlike(here: Sequence[str], there: Sequence[str]) -> tuple[str, str] | None:
    """Returns the words of two command lines that differ, with the options before them; None where none is alike."""
    matcher = SequenceMatcher(None, here, there, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    if not matcher.ratio():
        return None
    return (
        _excerpt(here, [(begin, end) for _, begin, end, _, _ in changes]),
        _excerpt(there, [(begin, end) for _, _, _, begin, end in changes]),
    )


def _excerpt(words: Sequence[str], spans: Sequence[tuple[int, int]]) -> str:
    parts = []
    for begin, end in spans:
        first = begin - 1 if begin > 0 and words[begin - 1].startswith("-") else begin
        parts.append(" ".join(words[first:end]) or "nothing")
    return " … ".join(parts)


def parse_patterns(text: str, where: str) -> tuple[str, ...]:
    """Parses patterns such as ``identity.* !identity.memory_gib treatment.kernel``.

    ``where``: the option or the file of the text, for the message. Raises UsageError: a pattern names a fact that no
    result has.
    """
    patterns = tuple(text.replace(",", " ").split())
    for pattern in patterns:
        source = pattern.removeprefix("!").partition(".")[0]
        if not any(fnmatchcase(name, source) for name in SOURCES):
            raise UsageError(f"{where}: '{pattern}' names no fact; facts begin with {', '.join(SOURCES)}")
    return patterns


def facts(result: Comparability) -> dict[str, Any]:
    """Returns all facts around a result, by name."""
    by_name: dict[str, Any] = {"placement": result.placement, "metric": result.metric, "rules": result.rules}
    for source in ("identity", "treatment", "conditions", "settings"):
        _flatten(source, getattr(result, source), by_name)
    return by_name


def _flatten(name: str, value: Any, by_name: dict[str, Any]) -> None:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            _flatten(f"{name}.{key}", part, by_name)
    elif value != {}:
        by_name[name] = value


def matches(fact: str, patterns: Sequence[str]) -> bool:
    """Whether the fact has to be the same: the last pattern that fits decides, and ``!`` excludes a fact."""
    decided = False
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        if fnmatchcase(fact, plain) or fact.startswith(f"{plain}."):
            decided = not pattern.startswith("!")
    return decided


def all_differences(here: Comparability, there: Comparability) -> list[Difference]:
    """Returns all facts that differ, in the order of their names. A fact that one result lacks differs."""
    facts_here: dict[str, Any] = {}
    facts_there: dict[str, Any] = {}
    for source in SOURCES:
        _flatten_differing(source, getattr(here, source), getattr(there, source), facts_here, facts_there)
    return [
        Difference(name, facts_here.get(name), facts_there.get(name))
        for name in sorted(facts_here.keys() | facts_there.keys())
        if facts_here.get(name) != facts_there.get(name)
    ]


def _flatten_differing(
    name: str, here: Any, there: Any, facts_here: dict[str, Any], facts_there: dict[str, Any]
) -> None:
    """Adds the facts that differ to two dicts. Skips equal parts: most are equal, and results come in thousands."""
    if here == there:
        return
    if isinstance(here, Mapping) and isinstance(there, Mapping) and here and there:
        for key in here.keys() | there.keys():
            _flatten_differing(f"{name}.{key}", here.get(key, {}), there.get(key, {}), facts_here, facts_there)
        return
    _flatten(name, here, facts_here)
    _flatten(name, there, facts_there)


def differences(here: Comparability, there: Comparability, patterns: Sequence[str] = DEFAULT) -> list[Difference]:
    """Returns the facts that differ and should not."""
    return [difference for difference in all_differences(here, there) if matches(difference.fact, patterns)]
