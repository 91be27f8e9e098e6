# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong, and what the test's outcome then is.

Every message is one sentence that names the culprit and the remedy; details (a log's tail) follow on further lines.
"""

from __future__ import annotations


class IcbenchError(Exception):
    """Base of all errors raised on purpose."""


class UsageError(IcbenchError):
    """An option, marker or file of the user is wrong: nothing is run (pytest exits with 4)."""


class Unsupported(IcbenchError):
    """This host cannot run the case: the test is skipped; the message is the reason and its remedy."""


class ProvisionError(IcbenchError):
    """The host could not be prepared, or a switch did not start: the case fails, the next one runs."""


class ConnectionLost(ProvisionError):
    """The other host cannot be talked to any more: the case fails, the next one connects anew."""


class WorkloadError(IcbenchError):
    """A workload process failed, died or hung: the case fails, the next one runs.

    Args:
        crashed: it ended by a signal, by an error of its port or without a word: another try may succeed.
    """

    def __init__(self, message: str, *, crashed: bool = False) -> None:
        super().__init__(message)
        self.crashed = crashed


class Invalid(IcbenchError):
    """A measurement is no number: verdict INVALID.

    Args:
        reason: one of ``no-forwarding corrupted flooded stalled accounts clock died generator-bound``, of a search also
            ``lossy unfinished``.
        evidence: one sentence with the figures that show it.
    """

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(f"{reason}: {evidence}")
        self.reason = reason
        self.evidence = evidence


class Regression(AssertionError):
    """A limit was missed, or another verdict that fails. The message's first line (at most 100 characters) is it.

    Args:
        verdict: REGRESSED, or with other policies another that decides nothing.
    """

    def __init__(self, message: str, *, verdict: str) -> None:
        super().__init__(message)
        self.verdict = verdict
