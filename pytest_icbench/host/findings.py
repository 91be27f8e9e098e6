# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says: one finding, and how findings are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """Weight of a finding."""

    MISSING = "missing"  #: something built in cannot run
    DISTURBS = "disturbs"  #: a measurement on this host is less exact than it could be
    NOTE = "note"  #: worth knowing
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about the host, in one sentence, and what can be done about it.

    Attributes:
        topic: what it is about, one or two words.
        parameters: kernel parameters that would help.
    """

    level: Level
    topic: str
    text: str
    remedy: str | None = None
    parameters: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data."""
        return {
            "level": str(self.level),
            "topic": self.topic,
            "text": self.text,
            "remedy": self.remedy,
            "parameters": list(self.parameters),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """The inverse of ``to_dict``."""
        return cls(Level(data["level"]), data["topic"], data["text"], data["remedy"], tuple(data["parameters"]))


def render(findings: Iterable[Finding]) -> str:
    """For people: what is missing first, one line a finding, and a line of kernel parameters to paste."""
    found = list(findings)
    width = max((len(finding.topic) for finding in found), default=0)
    lines = []
    for level in Level:
        chosen = [finding for finding in found if finding.level is level]
        if chosen:
            lines.append(f"{level}:")
        for finding in chosen:
            remedy = f" -> {finding.remedy}" if finding.remedy else ""
            lines.append(f"  {finding.topic:<{width}}  {finding.text}{remedy}")
    parameters = kernel_line(found)
    if parameters:
        lines += [
            "",
            "Kernel parameters that would help (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub, reboot):",
        ]
        lines.append(f"  {parameters}")
    return "\n".join(lines)


def kernel_line(findings: Iterable[Finding]) -> str:
    """All parameters in one line, each once."""
    return " ".join(dict.fromkeys(word for finding in findings for word in finding.parameters))


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if everything built in can run, 1 if something is missing."""
    return int(any(finding.level is Level.MISSING for finding in findings))
