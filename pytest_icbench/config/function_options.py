# SPDX-License-Identifier: BSD-3-Clause
"""The options of network functions in the path, and the words for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_icbench.config import named, values
from pytest_icbench.config.neighbours import NeighbourOptions
from pytest_icbench.config.row import option
from pytest_icbench.config.sequences import parse_words
from pytest_icbench.errors import UsageError

if TYPE_CHECKING:
    from pytest_icbench.model.toml import TomlFile

_PERCENTS = re.compile(r"\d{1,3}(:\d{1,3})*", re.ASCII)
#: Addresses of a chain's ports are 198.19.PAIR.x, two for each function.
MAX_CHAIN = 100
#: The word for a path without a function.
NO_FUNCTION = "none"
_FUNCTION = re.compile(r"[a-z][A-Za-z0-9.]*(\+[a-z][A-Za-z0-9.]*)*", re.ASCII)
_NUMBERED = re.compile(rf"([1-9]\d{{0,2}}x)?({_FUNCTION.pattern})", re.ASCII)


def parse_functions(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none nat nat+acl10``; None stands for no function. Raises UsageError for what no id can hold."""
    from pytest_icbench.model.contract import side_by_side  # other suites load this module, too

    words = parse_words(text, where)
    for word in words:
        parts, several = word.split(":"), ":" in word
        if not all((_NUMBERED if several else _FUNCTION).fullmatch(part) for part in parts) or (
            several and NO_FUNCTION in side_by_side(word)
        ):
            raise UsageError(
                f"{where}: '{word[:60]}' is no function: write parts joined by + (nat+acl10), different functions side"
                f" by side joined by : (wire:2xcost1000), or {NO_FUNCTION}"
            )
    return tuple(None if word == NO_FUNCTION else word for word in words)


def parse_active(text: str, where: str) -> tuple[int, ...]:
    """Parses numbers of active clients. Raises UsageError."""
    from pytest_icbench.model.subscribers import MOST_SUBSCRIBERS  # other suites load this module, too

    return values.axis("active clients", 1, MOST_SUBSCRIBERS)(text, where)


def _parse_percents(text: str, where: str) -> list[tuple[str, list[int]]]:
    from pytest_icbench.model.contract import percents  # other suites load this module, too

    words = parse_words(text, where)
    for word in words:
        if not _PERCENTS.fullmatch(word):
            raise UsageError(f"{where}: '{word[:60]}' is no list of per cents: write 70:30, one for each function")
    return [(word, [*percents(word)]) for word in words]


def parse_shares(text: str, where: str) -> tuple[str, ...]:
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
                f"{where}: '{word}' cannot be had of one CPU: shares are at least 1 and sum to at most 100 per cent"
            )
        splits.append(":".join(map(str, numbers)))
    return tuple(dict.fromkeys(splits))


def parse_caps(text: str, where: str) -> tuple[str, ...]:
    """Parses ``50:50 20``: the most per cent of its CPU that each function gets. Raises UsageError."""
    for word, numbers in _parse_percents(text, where):
        if min(numbers) < 1 or max(numbers) > 100:
            raise UsageError(f"{where}: '{word}' cannot be had of one CPU: a cap is 1 to 100 per cent")
    return parse_words(text, where)


@dataclass(frozen=True, slots=True, repr=False, eq=False)  # Options has them
class FunctionOptions(NeighbourOptions):
    """The options of network functions, and of neighbours."""

    function: tuple[str | None, ...] | None = option(
        "LIST",
        "replace the network functions between the ends of each pair: wire, cost1000, swap, route, nat,"
        " acl1000+deny30, police200k, shape10Mbit, firewall, inspect, subscribers1000, parts joined by +; different"
        " ones side by side on one CPU (wire:2xcost1000); or none (docs/reference/functions.md)",
        parse_functions,
    )
    function_count: tuple[int, ...] | None = option(
        "SPEC",
        "replace the numbers of functions side by side, 1 to 254: a pair for each; cases without a function keep"
        " their pairs",
        values.pairs,
        marker="None",
    )
    chain: tuple[int, ...] | None = option(
        "SPEC",
        "replace the numbers of functions in a row between the ends of each pair, 1 to 100",
        values.axis("functions in a row", 1, MAX_CHAIN),
        marker="1",
    )
    share: tuple[str, ...] | None = option(
        "LIST",
        "replace the shares of one CPU that functions side by side get, in per cent: 70:30, or 70 for the same; a pair"
        " for each",
        parse_shares,
        marker="None",
    )
    cap: tuple[str, ...] | None = option(
        "LIST",
        "replace the most that functions side by side get of their CPU, in per cent: 50:50; a pair for each",
        parse_caps,
        marker="None",
    )
    active: tuple[int, ...] | None = option(
        "SPEC",
        "replace the numbers of active clients of functions for subscribers, 1 to 1000: each sends at the rate, through"
        " the firewall of its own",
        parse_active,
        marker="None",
    )
    function_config: Mapping[str, TomlFile] = option(
        "COMPONENT=FILE",
        "the user's own configuration of what makes functions (linux, forwarder, ovs, suricata, vpp), in TOML; several"
        " with spaces between",
        default=MappingProxyType({}),
        parse_at=named.switch_configurations,
    )
