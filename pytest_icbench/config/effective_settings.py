# SPDX-License-Identifier: BSD-3-Clause
"""How long and how often to measure: the options, the marker and a call, merged into ``Settings``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pytest_icbench.config.option_table import TABLE, Options
from pytest_icbench.config.values import as_text
from pytest_icbench.errors import UsageError
from pytest_icbench.model.settings import LEAST_WARMUP_S, MOST_WARMUP_S, Settings
from pytest_icbench.wording import suggestion

_ROWS = {row.name: row for row in TABLE if row.setting}

#: Names that a marker and a call take: the options' names with underscores.
NAMES = tuple(_ROWS)


def parse_overrides(named: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Returns the settings that a marker or a call gives, by their names in ``Settings``.

    Args:
        named: values by the names of options; None stands for a setting that is not given.
        where: the beginning of a message.

    Raises:
        UsageError: a name is unknown or a value is bad.
    """
    overrides: dict[str, Any] = {}
    for name, value in named.items():
        row = _ROWS.get(name)
        if row is None:
            raise UsageError(f"{where}: there is no setting '{name}'{suggestion(name, NAMES)}")
        if value is not None:
            overrides[row.setting] = row.parse(as_text(value, f"{where}: {name}"), f"{where}: {name}")
    return MappingProxyType(overrides)


def merge_settings(options: Options, marker: Mapping[str, Any], call: Mapping[str, Any], where: str) -> Settings:
    """Returns the settings of one measurement.

    The order of precedence is: the user's settings, the call's, the marker's, the defaults.

    Args:
        marker: the marker's settings by their names in ``Settings``.
        call: the call's settings, likewise.
        where: the beginning of a message.

    Raises:
        UsageError: the settings contradict each other.
    """
    merged = {**marker, **call, **options.settings}
    protocol = merged.pop("protocol", None)
    adaptive: dict[str, Any] = {}
    if protocol is None and not merged.keys() & {"warmup_s", "skip_s", "keep_s"}:
        adaptive = {"warmup_s": LEAST_WARMUP_S, "max_warmup_s": MOST_WARMUP_S}
    if "max_duration_s" in merged:  # a search has its own limit unless one is given
        merged["search_time_s"] = merged["max_duration_s"]
    try:
        base = Settings(**adaptive, ring=options.ring, debug=options.debug, rebuild=options.rebuild)
        if protocol is not None:
            base = base.with_protocol(protocol)
        return Settings(**{**base.to_dict(), **merged})
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
