# SPDX-License-Identifier: BSD-3-Clause
"""The verdicts in one table: meaning, failing, exit status and colour of each. Pure, and cheap to import."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pytest_icbench.errors import UsageError
from pytest_icbench.wording import suggestion

if TYPE_CHECKING:
    from pytest_icbench.stats import verdict_rule

#: How a test ended; ``broken``: not by a verdict on figures, but by an INVALID measurement, an error or an assertion.
Outcome = Literal["passed", "skipped", "regressed", "undecided", "broken"]
Colour = Literal["good", "warn", "bad", "ink"]

#: pytest's exit status with ``--icbench-exit-codes``; of several outcomes the first decides. Other statuses are
#: pytest's own; 1 then means broken.
EXIT_STATUS: dict[Outcome, int] = {"regressed": 10, "undecided": 11}
#: No verdict: what ``--icbench-fail-on`` calls a session that would miss a loss of a tenth more often than not. Nothing
#: regressed in it, or that status stands.
WEAK, WEAK_STATUS = "WEAK", 12


class Verdict(StrEnum):
    """The verdict on a measurement. The members are in order: of several verdicts the first counts.

    Attributes:
        fails: whether a test with it fails unless the user says otherwise.
        good: whether a test with it never fails, not even with ``--icbench-strict``.
        outcome: how a test with it ends, whether it fails or not.
        colour: its colour on a page, a variable of the style sheet.
        notable: whether reports name the cases with it, and the reasons.
        decided: its name in ``stats.verdict_rule``.
    """

    fails: bool
    good: bool
    outcome: Outcome
    colour: Colour
    notable: bool
    decided: verdict_rule.Outcome | None

    #: The values are no measurement.
    INVALID = "INVALID", "broken", "bad", "fails notable", None
    #: A limit was missed, or the loss is beyond chance and at least what is allowed.
    REGRESSED = "REGRESSED", "regressed", "bad", "fails notable", "worse"
    #: There is something, but measured under other conditions.
    INCOMPARABLE = "INCOMPARABLE", "undecided", "bad", "notable", None
    #: Nothing is decided: the reason says what would tell.
    INCONCLUSIVE = "INCONCLUSIVE", "undecided", "warn", "notable", "open"
    #: There is nothing to compare with.
    NO_BASELINE = "NO_BASELINE", "undecided", "ink", "", None
    #: The gain is beyond chance and at least what is allowed.
    IMPROVED = "IMPROVED", "passed", "good", "good", "better"
    #: The values are within the limits, and a loss of the stated size would have been found.
    PASS = "PASS", "passed", "good", "good", "same"

    def __new__(
        cls, name: str, outcome: Outcome, colour: Colour, words: str, decided: verdict_rule.Outcome | None
    ) -> Verdict:
        self = str.__new__(cls, name)
        self._value_ = name
        self.outcome, self.colour, self.decided = outcome, colour, decided
        self.fails, self.notable, self.good = (word in words.split() for word in ("fails", "notable", "good"))
        return self

    @classmethod
    def of_outcome(cls, decided: verdict_rule.Outcome) -> Verdict:
        """Returns the verdict of a decided outcome."""
        return next(verdict for verdict in cls if verdict.decided == decided)


#: The verdicts in order, the deciding one first; readers of files compare texts with it.
ORDER: tuple[str, ...] = tuple(Verdict)
#: Verdicts that fail a test unless the user says otherwise.
DEFAULT_FAILING: tuple[str, ...] = tuple(verdict for verdict in Verdict if verdict.fails)
#: Verdicts with which a test never fails, however strict.
GOOD: tuple[str, ...] = tuple(verdict for verdict in Verdict if verdict.good)
#: Verdicts that can be made to fail a test.
BAD: tuple[str, ...] = tuple(verdict for verdict in Verdict if not verdict.good)
#: Verdicts whose cases reports name, with the reason.
NOTABLE: tuple[str, ...] = tuple(verdict for verdict in Verdict if verdict.notable)
#: Verdicts that decide nothing.
UNDECIDED: tuple[str, ...] = tuple(verdict for verdict in Verdict if verdict.outcome == "undecided")


def parse_verdicts(text: str, where: str) -> tuple[str, ...]:
    """Parses ``REGRESSED INVALID``, in any case, or ``none``. Raises UsageError; its message begins with ``where``."""
    words = text.replace(",", " ").upper().split()
    if words == ["NONE"]:
        return ()
    for word in words:
        if word not in (*BAD, WEAK):
            raise UsageError(f"{where}: '{word}' is no verdict that could fail a test{suggestion(word, (*BAD, WEAK))}")
    return tuple(words)
