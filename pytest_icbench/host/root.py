# SPDX-License-Identifier: BSD-3-Clause
"""Access to /sys and /proc through one object, so that tests can use recorded trees of other machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Root:
    """A directory below which ``/sys`` and ``/proc`` are found; ``/`` is the running machine."""

    base: Path = Path("/")

    @property
    def live(self) -> bool:
        """Whether this is the running machine and not a recorded tree."""
        return self.base == Path("/")

    def path(self, name: str) -> Path:
        """Returns the path of a file, such as ``/sys/x``, below this root."""
        return self.base / name.lstrip("/")

    def exists(self, name: str) -> bool:
        """Returns whether there is such a file or directory."""
        return self.path(name).exists()

    def read(self, name: str) -> str | None:
        """Returns a file's text without surrounding white space, None if it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def read_int(self, name: str) -> int | None:
        """Returns a file's first number, None if there is none."""
        text = self.read(name)
        try:
            return int(text.split()[0], 0) if text else None
        except ValueError:
            return None

    def glob(self, pattern: str) -> list[str]:
        """Returns the names that match, sorted and absolute, as if this root were ``/``."""
        return sorted("/" + str(path.relative_to(self.base)) for path in self.base.glob(pattern.lstrip("/")))

    def list(self, name: str) -> list[str]:
        """Returns the entries of a directory, sorted; empty if it cannot be read."""
        try:
            return sorted(path.name for path in self.path(name).iterdir())
        except OSError:
            return []

    def link(self, name: str) -> str | None:
        """Returns the last component of a symbolic link's target, None if it is no link."""
        try:
            return self.path(name).readlink().name
        except OSError:
            return None

    def write(self, name: str, text: str) -> None:
        """Writes a kernel file in one call. Raises OSError."""
        self.path(name).write_text(text, encoding="utf-8")


def parse_cpu_list(text: str | None) -> tuple[int, ...]:
    """Parses the kernel's lists of CPUs: ``0-2,8`` gives (0, 1, 2, 8), ``0-8:2/4`` has a stride, no text gives ().

    Raises ValueError.
    """
    cpus: set[int] = set()
    for part in (text or "").replace("\n", ",").split(","):
        part = part.strip()
        if not part:
            continue
        span, _, stride = part.partition(":")
        first, dash, last = span.partition("-")
        used, _, group = stride.partition("/")
        low, high = int(first), int(last if dash else first)
        size = int(group) if group else 1
        keep = int(used) if used else 1
        cpus.update(cpu for cpu in range(low, high + 1) if (cpu - low) % size < keep)
    return tuple(sorted(cpus))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Formats CPUs for the kernel and LXC: (0, 1, 2, 8) gives ``0-2,8``."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
