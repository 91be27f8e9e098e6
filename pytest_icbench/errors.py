# SPDX-License-Identifier: BSD-3-Clause
"""The errors of the package, and the outcome of a test that raises them.

Each message is one sentence that names the cause and the remedy. Details (a log's tail) follow on further lines.
"""

from __future__ import annotations

from pytest_icbench.wording import printable


class IcbenchError(Exception):
    """The base of all errors that are raised on purpose.

    Messages quote files and options, so control characters except line ends are replaced.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(map(printable, str(message).split("\n"))))


class UsageError(IcbenchError):
    """A user's option, marker or file is wrong: no test runs (pytest exits with 4). The message is one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(str(message)))


class Unsupported(IcbenchError):
    """This host cannot run the case: the test is skipped, and the message is the reason with its remedy."""


class ProvisionError(IcbenchError):
    """The host could not be prepared, or a switch did not start: the case fails, and the next one runs."""


class NoRoom(ProvisionError):
    """The host lacks memory for what was asked for."""


class NotStarted(ProvisionError):
    """A program is missing, or this host cannot execute it."""


class DriverFault(ProvisionError):
    """A driver raised an exception of another kind, or returned what its protocol does not allow."""


class ConnectionLost(ProvisionError):
    """The connection to the other host is lost: the case fails, and the next one connects again."""


class WorkloadError(IcbenchError):
    """A workload process failed, died or hung: the case fails, and the next one runs.

    ``crashed``: whether it ended by a signal, an error of its port or without a message, so that a retry may succeed.
    """

    def __init__(self, message: str, *, crashed: bool = False) -> None:
        super().__init__(message)
        self.crashed = crashed


class Invalid(IcbenchError):
    """A measurement has no valid value: its verdict is INVALID.

    Args:
        reason: one of ``verdict_reasons.INVALID_REASONS``.
        evidence: one sentence with the values that show it.
    """

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(f"{reason}: {evidence}")
        self.reason = reason
        self.evidence = evidence


class Regression(AssertionError):
    """The verdict fails the test: a limit was missed, or the policy fails another verdict.

    Args:
        message: its first line has at most 100 characters and states the verdict.
        verdict: REGRESSED, or another one that the policy fails.
    """

    def __init__(self, message: str, *, verdict: str) -> None:
        super().__init__(message)
        self.verdict = verdict
