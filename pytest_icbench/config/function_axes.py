# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of the axes of network functions, of noisy neighbours and of containers to create."""

from __future__ import annotations

import re

from pytest_icbench.config import values
from pytest_icbench.config.ranges import parse_words
from pytest_icbench.errors import UsageError
from pytest_icbench.model.cpu_allocation import percents, side_by_side
from pytest_icbench.model.noisy_neighbour import NoisyNeighbour, cache_ways
from pytest_icbench.model.noisy_neighbour_kinds import KINDS, L3, MOST_CPUS
from pytest_icbench.model.startup import MOST_CONTAINERS, Crowd
from pytest_icbench.wording import suggestion

_PERCENTS = re.compile(r"\d{1,3}(:\d{1,3})*", re.ASCII)
#: Addresses of a chain's ports are 198.19.PAIR.x, two for each function.
MAX_CHAIN = 100
#: The word for a path without a function.
NO_FUNCTION = "none"
_FUNCTION = re.compile(r"[a-z][A-Za-z0-9.]*(\+[a-z][A-Za-z0-9.]*)*", re.ASCII)
_NUMBERED = re.compile(rf"([1-9]\d{{0,2}}x)?({_FUNCTION.pattern})", re.ASCII)
#: The word for cases that are not isolated.
NOT_ISOLATED = "none"


def parse_functions(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none nat nat+acl10``; None stands for no function. Raises UsageError for what no id can hold."""
    words = parse_words(text, where)
    for word in words:
        parts, several = word.split(":"), ":" in word
        if not all((_NUMBERED if several else _FUNCTION).fullmatch(part) for part in parts) or (
            several and NO_FUNCTION in side_by_side(word)
        ):
            raise UsageError(
                f"{where}: '{word[:60]}' is not a function: write parts joined by + (nat+acl10), different functions"
                f" side by side joined by : (wire:2xcost1000), or {NO_FUNCTION}"
            )
    return tuple(None if word == NO_FUNCTION else word for word in words)


def _parse_percents(text: str, where: str) -> list[tuple[str, list[int]]]:
    words = parse_words(text, where)
    for word in words:
        if not _PERCENTS.fullmatch(word):
            raise UsageError(f"{where}: '{word[:60]}' is not a list of per cents: write 70:30, one for each function")
    return [(word, [*percents(word)]) for word in words]


def parse_cpu_shares(text: str, where: str) -> tuple[str, ...]:
    """Parses ``50 70:30``: per cents of one CPU for functions side by side; a single N is ``N:(100-N)``.

    Raises:
        UsageError: a share is 0, or shares sum to more than 100.
    """
    splits = []
    for word, numbers in _parse_percents(text, where):
        if len(numbers) == 1:
            numbers.append(100 - numbers[0])
        if min(numbers) < 1 or sum(numbers) > 100:
            raise UsageError(
                f"{where}: '{word}' is not possible on one CPU: shares are at least 1 and sum to at most 100 per cent"
            )
        splits.append(":".join(map(str, numbers)))
    return tuple(dict.fromkeys(splits))


def parse_cpu_quotas(text: str, where: str) -> tuple[str, ...]:
    """Parses ``50:50 20``: the most per cent of its CPU that each function gets. Raises UsageError."""
    for word, numbers in _parse_percents(text, where):
        if min(numbers) < 1 or max(numbers) > 100:
            raise UsageError(f"{where}: '{word}' is not possible on one CPU: a quota is 1 to 100 per cent")
    return parse_words(text, where)


def parse_noisy_neighbours(text: str, where: str) -> tuple[str, ...]:
    """Parses ``none cpu stream:2``. Raises UsageError for another kind, or too many CPUs."""
    labels = []
    for word in parse_words(text, where):
        noisy_neighbour = NoisyNeighbour.of(word)
        if noisy_neighbour is None:
            kind = word.partition(":")[0]
            what = f"'{word[:60]}' is not a number of CPUs of a noisy neighbour: write {kind}:2, 1 to {MOST_CPUS}"
            if kind not in KINDS:
                what = f"there is no noisy neighbour '{kind[:60]}'{suggestion(kind, tuple(KINDS))}"
            raise UsageError(f"{where}: {what}")
        labels.append(noisy_neighbour.label)
    return tuple(dict.fromkeys(labels))


def parse_isolations(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none l3 cat:11-1``; None stands for no isolation. Raises UsageError for other words and empty parts."""
    isolations = []
    for word in parse_words(text, where):
        label = word.replace("-", ".")
        ways = cache_ways(label)
        if 0 in ways:
            raise UsageError(f"{where}: '{word}' leaves a part without any way of the cache: give each 1 at least")
        if word not in (NOT_ISOLATED, L3) and not ways:
            raise UsageError(
                f"{where}: '{word[:60]}' is not an isolation: write {NOT_ISOLATED}, {L3}, or cat: with the cache ways"
                " of two to four parts, the noisy neighbour's last (cat:11-1, cat:3-3-3-3)"
            )
        isolations.append(None if word == NOT_ISOLATED else label)
    return tuple(dict.fromkeys(isolations))


def parse_crowds(text: str, where: str) -> tuple[str, ...]:
    """Parses crowds (``netns:1000 fork:300``), whose kinds are checked where nodes are known. Raises UsageError."""
    labels = []
    for word in parse_words(text, where):
        crowd = Crowd.of(word)
        if crowd is None:
            raise UsageError(
                f"{where}: '{word}' is not a number of containers; write KIND:N, N from 1 to {MOST_CONTAINERS:,}, as"
                " netns:1000, or KIND:N:TIMEms with the time between new clients, as netns:200:25ms"
            )
        labels.append(crowd.label)
    return tuple(labels)


def parse_active(text: str, where: str) -> tuple[int, ...]:
    """Parses numbers of active clients. Raises UsageError."""
    from pytest_icbench.model.subscribers import (
        MOST_SUBSCRIBERS,  # imports cases, which declaring options does not need
    )

    return values.numbers("active clients", 1, MOST_SUBSCRIBERS)(text, where)
