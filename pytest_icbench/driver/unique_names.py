# SPDX-License-Identifier: BSD-3-Clause
"""Third-party drivers next to the built-in ones of a kind, each with a unique name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pytest_icbench.errors import UsageError

T = TypeVar("T")


def index_by_name(
    builtin: Iterable[type[T]], third_party: Iterable[type[T]], *, hook: str, plural: str, attribute: str = "name"
) -> dict[str, type[T]]:
    """Returns the classes by name, built-in ones first. Raises UsageError if two have the same name.

    Args:
        hook: the hook that provided them, for the message.
        plural: the plural of the kind, for the message.
        attribute: the attribute with the name.
    """
    known: dict[str, type[T]] = {getattr(cls, attribute): cls for cls in builtin}
    for cls in third_party:
        name = getattr(cls, attribute)
        if known.setdefault(name, cls) is not cls:
            raise UsageError(
                f"{hook}: two {plural} have the name '{name}'"
                f" ({known[name].__module__} and {cls.__module__}); rename one"
            )
    return known
