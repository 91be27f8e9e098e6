# SPDX-License-Identifier: BSD-3-Clause
"""What other packages bring beside the built-in drivers of a kind, each by a name of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pytest_icbench.errors import UsageError

T = TypeVar("T")


def by_name(
    builtin: Iterable[type[T]], brought: Iterable[type[T]], *, hook: str, plural: str, attribute: str = "name"
) -> dict[str, type[T]]:
    """Returns the classes by name, built-in ones first. Raises UsageError if two have the same name.

    Args:
        hook: the hook that brought them, the beginning of the message.
        plural: the word for several of them.
        attribute: the attribute with the name.
    """
    known: dict[str, type[T]] = {getattr(cls, attribute): cls for cls in builtin}
    for cls in brought:
        name = getattr(cls, attribute)
        if known.setdefault(name, cls) is not cls:
            raise UsageError(
                f"{hook}: two {plural} have the name '{name}'"
                f" ({known[name].__module__} and {cls.__module__}); rename one"
            )
    return known
