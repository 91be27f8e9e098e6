# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's findings, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial


class Level(StrEnum):
    """The severity of a finding."""

    MISSING = "missing"  #: a requirement of every session, or a requested program, cannot run
    DISTURBS = "disturbs"  #: a measurement on this host is less exact than it could be
    NOTE = "note"  #: worth knowing
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about the host in one sentence, and a remedy.

    Attributes:
        topic: its subject in one or two words.
        parameters: kernel parameters that would help.
    """

    level: Level
    topic: str
    text: str
    remedy: str | None = None
    parameters: tuple[str, ...] = ()


#: Findings of each level.
lack, disturbance = partial(Finding, Level.MISSING), partial(Finding, Level.DISTURBS)
note, success = partial(Finding, Level.NOTE), partial(Finding, Level.GOOD)


def render(findings: Iterable[Finding]) -> str:
    """Returns a text with one line per finding, grouped by level, and a line of kernel parameters to paste."""
    findings = list(findings)
    width = max((len(finding.topic) for finding in findings), default=0)
    lines = []
    for level in Level:
        chosen = [finding for finding in findings if finding.level is level]
        if chosen:
            lines.append(f"{level}:")
        for finding in chosen:
            remedy = f" -> {finding.remedy}" if finding.remedy else ""
            lines.append(f"  {finding.topic:<{width}}  {finding.text}{remedy}")
    parameters = kernel_line(findings)
    if parameters:
        lines += [
            "",
            "Kernel parameters that would help (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub, reboot):",
        ]
        lines.append(f"  {parameters}")
    return "\n".join(lines)


def kernel_line(findings: Iterable[Finding]) -> str:
    """Returns all parameters in one line, each once."""
    return " ".join(dict.fromkeys(word for finding in findings for word in finding.parameters))


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns 1 if something is missing, else 0."""
    return int(any(finding.level is Level.MISSING for finding in findings))
