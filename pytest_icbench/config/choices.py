# SPDX-License-Identifier: BSD-3-Clause
"""The values of an axis that a switch can have, of those that a request or the user asks for. Pure."""

from __future__ import annotations

from pytest_icbench.errors import UsageError
from pytest_icbench.model.switch_traits import SwitchTraits


def choose(
    noun: str,
    asked: tuple[str, ...] | None,
    replaced: tuple[str, ...] | None,
    natural: tuple[str, ...],
    supported: tuple[str, ...],
    named: bool,
    where: str,
) -> tuple[str, ...]:
    """Returns the names that a switch takes: its natural ones unless some are asked for, or replaced by the user.

    Raises:
        UsageError: a switch that is ``named`` supports none of those asked for; the sentence begins with ``where``.
    """
    if asked is not None and named and not possible(asked, supported):
        raise UsageError(f"{where} has no {noun} {' or '.join(asked)}; it has {' '.join(supported)}")
    chosen = replaced if replaced is not None else asked
    return natural if chosen is None else possible(chosen, supported)


def possible(asked: tuple[str, ...], supported: tuple[str, ...]) -> tuple[str, ...]:
    """Returns those asked for that are supported; ``all`` stands for all of them."""
    return supported if "all" in asked else tuple(name for name in asked if name in supported)


def cores_of(asked: tuple[int, ...] | None, cls: type[SwitchTraits]) -> tuple[int | None, ...]:
    """Returns the worker cores asked for; None is the natural number, the only one of a switch that does not scale."""
    if asked is None or not cls.scalable:
        return (None,)
    return tuple(None if cores == cls.default_cores else cores for cores in asked)
