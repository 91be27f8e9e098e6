# SPDX-License-Identifier: BSD-3-Clause
"""Reads the example of docs/how-to/adding-a-switch.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "adding-a-switch.md"
MODULE = "icbench_macvlan"


def files() -> dict[str, str]:
    """Returns the files of its package by name."""
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S))
