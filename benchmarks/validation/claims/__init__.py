# SPDX-License-Identifier: BSD-3-Clause
"""The claims, a module each, in the order of the page."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from validation.model import Claim

NAMES = (
    *("accounts", "latency", "stalls", "rate", "meters", "coverage", "disturbance", "time", "search"),
    *("search_trials", "gate", "slowed", "history"),
)


def load() -> dict[str, Claim]:
    """The modules by name. Importing them measures nothing."""
    return {name: cast(Claim, import_module(f"validation.claims.{name}")) for name in NAMES}
