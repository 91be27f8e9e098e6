# SPDX-License-Identifier: BSD-3-Clause
"""Asks a hook for the classes of other packages, which are checked before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import UsageError
from pytest_icbench.plugin.usage import sentence_of

if TYPE_CHECKING:
    import pytest


def brought_classes(config: pytest.Config, hook: str, attribute: str = "name") -> list[Any]:
    """Returns the classes that a hook brings, each with a text for a name.

    Args:
        hook: the hook's name, the beginning of a message.
        attribute: the attribute with the name.

    Raises:
        UsageError: the hook raised, or brought something else.
    """
    try:
        classes = [cls for several in getattr(config.hook, hook)(config=config) for cls in several]
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{hook} raised {sentence_of(error)}") from None
    for cls in classes:
        if not isinstance(cls, type):
            raise UsageError(f"{hook}: {cls!r:.60} is no class")
        name = getattr(cls, attribute, None)
        if not isinstance(name, str) or not name.strip():
            raise UsageError(
                f"{hook}: {cls.__name__} ({cls.__module__}) has no {attribute}: its attribute '{attribute}' is"
                f" {name!r:.60}"
            )
    return classes
