# SPDX-License-Identifier: BSD-3-Clause
"""Errors outside of tests as pytest reports them: an exit status and a sentence, never its own internal error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import IcbenchError, UsageError
from pytest_icbench.wording import printable

#: The key of the output of a worker of xdist with the reason why it refused to begin.
REFUSAL = "icbench_refusal"


def describe_error(error: Exception) -> str:
    """Returns an error as a message has it; one that is not of this package with its type and place."""
    if isinstance(error, IcbenchError):
        return str(error)
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return printable(f"{type(error).__name__}: {error}{place}")


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns errors before the first test into pytest's usage errors: exit code 4 and one sentence."""
    try:
        yield
    except (pytest.UsageError, pytest.Collector.CollectError):
        raise
    except Exception as error:
        raise pytest.UsageError(describe_error(error)) from (None if isinstance(error, IcbenchError) else error)


@contextmanager
def report_errors(report: Callable[[str], object], subject: str = "") -> Iterator[None]:
    """Reports an error within the block in a sentence, and goes on: it costs no result.

    ``subject``: the beginning of the sentence.
    """
    try:
        yield
    except Exception as error:
        report(f"{subject}{describe_error(error)}")


def refuse_forks(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Raises UsageError if pytest-forked would run a benchmark in a child, which cannot hold the host."""
    forked = config.getoption("forked", False)
    if forked is True or any(item.get_closest_marker("forked") is not None for item in items):
        raise UsageError(
            f"{'--forked' if forked is True else 'the marker forked'}: a forked child cannot measure, since its parent"
            " holds the host: leave it out"
        )


def refuse_rounds(options: Options) -> None:
    """Raises UsageError if cases that are to be measured in rounds were given to workers of xdist."""
    if options.rounds > 1:
        raise UsageError("--icbench-rounds: a round has all cases, but workers of xdist are given one each; drop -n")
