# SPDX-License-Identifier: BSD-3-Clause
"""The errors of the package, and the outcome of a test that raises them.

Every message is one sentence that names the cause and the remedy. Details (a log's tail) follow on further lines.
"""

from __future__ import annotations

from pytest_icbench.wording import printable


class IcbenchError(Exception):
    """The base of all errors that are raised on purpose.

    Messages quote files and options, so their control characters are replaced here, but for the ends of lines.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(map(printable, str(message).split("\n"))))


class UsageError(IcbenchError):
    """An option, marker or file of the user is wrong: no test runs (pytest exits with 4). The message is one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(str(message)))


class Unsupported(IcbenchError):
    """This host cannot run the case: the test is skipped, and the message is the reason with its remedy."""


class ProvisionError(IcbenchError):
    """The host could not be prepared, or a switch did not start: the case fails, and the next one runs."""


class NoRoom(ProvisionError):
    """The host lacks memory for what was asked for."""


class NotStarted(ProvisionError):
    """A program is missing, or is none that this host can execute."""


class DriverFault(ProvisionError):
    """A driver raised what is no error of this package, or returned what its protocol does not allow."""


class ConnectionLost(ProvisionError):
    """The connection to the other host is lost: the case fails, and the next one connects again."""


class WorkloadError(IcbenchError):
    """A workload process failed, died or hung: the case fails, and the next one runs.

    Args:
        crashed: whether a signal, an error of its port or no message ended it, so that another try may succeed.
    """

    def __init__(self, message: str, *, crashed: bool = False) -> None:
        super().__init__(message)
        self.crashed = crashed


class Invalid(IcbenchError):
    """A measurement is no number: its verdict is INVALID.

    Args:
        reason: one of ``no-forwarding corrupted flooded stalled accounts clock died function neighbour
            generator-bound``; of a search also ``lossy unfinished``.
        evidence: one sentence with the values that show it.
    """

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(f"{reason}: {evidence}")
        self.reason = reason
        self.evidence = evidence


class Regression(AssertionError):
    """The verdict fails the test: a limit was missed, or the policy fails other verdicts too.

    Args:
        message: its first line has at most 100 characters and states the verdict.
        verdict: REGRESSED, or another one that the policy fails.
    """

    def __init__(self, message: str, *, verdict: str) -> None:
        super().__init__(message)
        self.verdict = verdict
