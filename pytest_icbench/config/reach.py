# SPDX-License-Identifier: BSD-3-Clause
"""Whether a switch asked for has the techniques and ports asked for: else options leave no case, and say why."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.wording import alternatives


def check_reach(options: Options, kept: Sequence[type[SwitchTraits]]) -> None:
    """Checks that one of the switches asked for has one of the techniques and ports asked for. Raises UsageError."""
    for option, what, asked, had in (
        ("--icbench-api", "API", options.api, {cls.name: tuple(cls.apis) for cls in kept}),
        ("--icbench-port", "port kind", options.port, {cls.name: tuple(cls.ports) for cls in kept}),
    ):
        if (
            kept
            and asked is not None
            and "all" not in asked
            and not any(set(asked) & {*kinds} for kinds in had.values())
        ):
            has = "; ".join(f"{name} has {alternatives(kinds)}" for name, kinds in [*had.items()][:3] if kinds)
            names = ", ".join(cls.name for cls in kept)
            raise UsageError(f"{option}: {names} can have no {what} {alternatives(asked)}{has and f' ({has})'}")


def check_way(options: Options, kept: Sequence[type[SwitchTraits]]) -> None:
    """Checks that a switch asked for has a technique asked for over a port kind asked for, or else over a usual one.

    A marker may name the port kind, so this is for a session in which no test has a case. Raises UsageError.
    """
    if options.api is None or "all" in options.api or "all" in (options.port or ()):
        return
    remedies = []
    for cls in kept:
        able = [port for port in cls.ports if {*options.api} & {*cls.port_apis(port)}]
        if {*able} & {*(options.port or (port for port in cls.ports if port not in cls.ports_by_name))}:
            return
        if able:
            remedies.append(f"{cls.name} has {alternatives(options.api)} over port kind {alternatives(able)} alone")
    if remedies:
        raise UsageError(f"--icbench-api: {'; '.join(remedies[:3])}: choose with --icbench-port")
