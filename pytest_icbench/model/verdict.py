# SPDX-License-Identifier: BSD-3-Clause
"""The verdicts, in one place that costs nothing to import. Pure."""

from __future__ import annotations

from typing import Literal, get_args

from pytest_icbench.errors import UsageError
from pytest_icbench.wording import suggestion

Verdict = Literal["PASS", "IMPROVED", "REGRESSED", "INCONCLUSIVE", "NO_BASELINE", "INCOMPARABLE", "INVALID"]

#: Verdicts that fail a test unless the user says otherwise.
DEFAULT_FAILING: tuple[Verdict, ...] = ("REGRESSED", "INVALID")
#: Verdicts that nothing fails by, however strict.
GOOD = ("PASS", "IMPROVED")
#: Of several the first is the verdict.
ORDER: tuple[Verdict, ...] = ("INVALID", "REGRESSED", "INCOMPARABLE", "INCONCLUSIVE", "NO_BASELINE", "IMPROVED", "PASS")


def parse_verdicts(text: str, where: str) -> tuple[str, ...]:
    """``REGRESSED INVALID``, in any case, or ``none``. Raises UsageError."""
    words = text.replace(",", " ").upper().split()
    if words == ["NONE"]:
        return ()
    known = tuple(verdict for verdict in get_args(Verdict) if verdict not in GOOD)
    for word in words:
        if word not in known:
            raise UsageError(f"{where}: '{word}' is no verdict that could fail a test{suggestion(word, known)}")
    return tuple(words)
