# SPDX-License-Identifier: BSD-3-Clause
"""Errors outside of tests as pytest reports them: an exit status and a sentence, never its own internal error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

import pytest

from pytest_icbench.errors import IcbenchError
from pytest_icbench.wording import printable


def sentence_of(error: Exception) -> str:
    """Returns an error as a message has it; one that is not of this package with its type and place."""
    if isinstance(error, IcbenchError):
        return str(error)
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return printable(f"{type(error).__name__}: {error}{place}")


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns what goes wrong before the first test into pytest's own: exit code 4 and one sentence."""
    try:
        yield
    except (pytest.UsageError, pytest.Collector.CollectError):
        raise
    except Exception as error:
        raise pytest.UsageError(sentence_of(error)) from (None if isinstance(error, IcbenchError) else error)


@contextmanager
def told(tell: Callable[[str], object], subject: str = "") -> Iterator[None]:
    """Tells of what goes wrong within the block, which costs no result, and goes on.

    Args:
        subject: the beginning of the sentence.
    """
    try:
        yield
    except Exception as error:
        tell(f"{subject}{sentence_of(error)}")
