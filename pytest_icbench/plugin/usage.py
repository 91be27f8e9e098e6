# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of the user as pytest reports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_icbench.errors import UsageError


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns mistakes of the user into pytest's own: exit code 4 and one sentence."""
    try:
        yield
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
