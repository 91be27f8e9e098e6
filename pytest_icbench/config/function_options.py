# SPDX-License-Identifier: BSD-3-Clause
"""The options of network functions in the path, and the words for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_icbench.config import named, values
from pytest_icbench.config.row import option
from pytest_icbench.config.sequences import parse_words
from pytest_icbench.errors import UsageError

if TYPE_CHECKING:
    from pytest_icbench.model.toml import TomlFile

#: Addresses of a chain's ports are 198.19.PAIR.x, two for each function.
MAX_CHAIN = 100
#: The word for a path without a function.
NO_FUNCTION = "none"
_FUNCTION = re.compile(r"[a-z][A-Za-z0-9.]*(\+[a-z][A-Za-z0-9.]*)*", re.ASCII)


def parse_functions(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none nat nat+acl10``; None stands for no function. Raises UsageError for what no id can hold."""
    words = parse_words(text, where)
    for word in words:
        if not _FUNCTION.fullmatch(word):
            raise UsageError(
                f"{where}: '{word[:60]}' is no function: write parts joined by + (nat+acl10), or {NO_FUNCTION}"
            )
    return tuple(None if word == NO_FUNCTION else word for word in words)


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """The options of network functions."""

    function: tuple[str | None, ...] | None = option(
        "LIST",
        "replace the network functions between the ends of each pair: wire, cost1000, swap, route, nat,"
        " acl1000+deny30, police200k, shape10Mbit, firewall, parts joined by +, or none (docs/reference/functions.md)",
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
    function_config: Mapping[str, TomlFile] = option(
        "COMPONENT=FILE",
        "the user's own configuration of what makes functions (linux, forwarder, ovs), in TOML; several with"
        " spaces between",
        default=MappingProxyType({}),
        parse_at=named.switch_configurations,
    )
