# SPDX-License-Identifier: BSD-3-Clause
"""The undo log: how each change is undone, on disk before the change is made.

A journal is a file of JSON lines: the owner first, then ``{"entry": n, "kind": …, "data": {…}}`` before each change and
``{"done": n}`` once it has been undone. A torn last line belongs to a change that was never made.

A journal may come from a newer version, with changes that this version does not know. Changes made before an unknown
one are left alone: the unknown one may depend on them, as a NIC depends on the namespace that it is in.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_icbench.errors import IcbenchError
from pytest_icbench.version import package_version

SCHEMA = 1
Undo = Callable[..., None]


@dataclass(frozen=True, slots=True)
class UndoKind:
    """The way in which one kind of change is undone.

    Attributes:
        undo: called with the entry's data as keyword arguments; idempotent; raises OSError or IcbenchError on failure.
        early: whether it is undone before all others, whatever its position (processes hold what the others free).
        survives_reboot: whether the change outlives the boot in which it was made.
    """

    undo: Undo
    early: bool = False
    survives_reboot: bool = False


def _not_understood(entry: Entry, why: TypeError, left: int, version: str | None) -> str:
    """Returns the message about an entry that this version cannot undo.

    Args:
        left: number of older changes that are left alone because of it.
        version: version of the package that made the journal; None if unknown.
    """
    before = f", so {left} older change{'s are' if left > 1 else ' is'} left alone" if left else ""
    maker = f"pytest-icbench {version} or later" if version else "the pytest-icbench that made it"
    return f"this version cannot undo {entry.kind} {entry.data} ({why}){before}: run `icbench recover` of {maker}"


def boot_id() -> str:
    """Returns the identifier of the running boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def process_start_time(pid: int) -> int | None:
    """Returns a process' start in clock ticks since the boot; None if it does not exist or has ended (zombie)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that made a journal. Boot and start time identify it, since a pid can be used again."""

    boot: str
    pid: int
    start_time: int
    since: str

    @classmethod
    def current(cls) -> Owner:
        """Returns this process as an owner."""
        start = process_start_time(os.getpid())
        assert start is not None
        return cls(boot_id(), os.getpid(), start, datetime.now(UTC).isoformat(timespec="seconds"))

    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.boot == boot_id() and process_start_time(self.pid) == self.start_time


@dataclass(frozen=True, slots=True)
class Entry:
    """A change that has to be undone."""

    number: int
    kind: str
    data: dict[str, Any]


@dataclass(slots=True)
class _Content:
    """The content of a journal's file.

    Attributes:
        version: version of the package that made it; None if it has none.
        entries: the changes that are not undone yet, by number.
        last: the highest number in use.
    """

    owner: Owner | None
    version: str | None
    entries: dict[int, Entry]
    last: int


def _parse(text: str) -> _Content:
    """Parses a journal's text; lines that are damaged are ignored."""
    owner: Owner | None = None
    version: str | None = None
    entries: dict[int, Entry] = {}
    last = 0
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        if "owner" in value:
            owner, version = Owner(**value["owner"]), value.get("version")
        elif "entry" in value:
            last = max(last, value["entry"])
            entries[value["entry"]] = Entry(value["entry"], value["kind"], value["data"])
        elif "done" in value:
            entries.pop(value["done"], None)
    return _Content(owner, version, entries, last)


class Journal:
    """The undo log of one session. Safe to use from several threads.

    Args:
        path: its file. A missing file is created with its header; an existing one is read (recovery).
        kinds: the ways in which changes are undone, by an entry's kind.
    """

    def __init__(self, path: Path, kinds: Mapping[str, UndoKind]) -> None:
        self.path = path
        self._kinds = kinds
        self._lock = threading.Lock()
        old = path.read_bytes() if path.exists() else b""
        content = _parse(old.decode(errors="replace"))
        self._entries, self._last = content.entries, content.last
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if old and not old.endswith(b"\n"):
            os.write(self._file, b"\n")  # ends the torn line, so that it does not swallow the next
        if not old:
            content.owner, content.version = Owner.current(), package_version()
            header = {"schema": SCHEMA, "version": content.version, "owner": asdict(content.owner)}
            self._append(header, sync=True)
        self.owner, self.version = content.owner, content.version

    def _append(self, value: dict[str, Any], *, sync: bool) -> None:
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            raise OSError(28, f"the journal {self.path} cannot be written: no space left")
        if sync:
            os.fsync(self._file)

    def record(self, kind: str, **data: Any) -> int:
        """Records on disk how a change is undone. To be called *before* the change.

        Args:
            data: plain JSON data, the undo function's keyword arguments.

        Returns the number to call ``done`` with once the change has been undone. Raises OSError if the disk is full.
        """
        with self._lock:
            entry = Entry(self._last + 1, kind, data)
            self._append({"entry": entry.number, "kind": kind, "data": data}, sync=True)
            self._last = entry.number
            self._entries[entry.number] = entry
            return entry.number

    def done(self, entry: int) -> None:
        """Drops a change that its owner has undone. An unknown number is ignored."""
        with self._lock:
            if self._entries.pop(entry, None) is not None:
                self._append({"done": entry}, sync=False)

    def pending(self) -> list[Entry]:
        """Returns the changes that are still to be undone, in the order of their recording."""
        with self._lock:
            return [self._entries[number] for number in sorted(self._entries)]

    def undo_all(self, *, past_unknown: bool = False) -> list[str]:
        """Undoes the pending changes, the latest first. It goes on after an error, but stops at an unknown one.

        Args:
            past_unknown: whether to go on after an unknown change, because it was undone by hand.

        Returns one sentence for each entry that could not be undone. Such entries stay in the journal, as do those
        that were left alone.
        """
        return self._undo(self.pending(), past_unknown=past_unknown)

    def undo(self, numbers: Iterable[int]) -> list[str]:
        """Undoes these entries alone, in the way of ``undo_all``. Returns one sentence for each failure."""
        selected = set(numbers)
        return self._undo([entry for entry in self.pending() if entry.number in selected])

    def _undo(self, pending: list[Entry], *, past_unknown: bool = False) -> list[str]:
        rebooted = self.owner is not None and self.owner.boot != boot_id()
        entries = pending[::-1]
        entries.sort(key=lambda entry: not (entry.kind in self._kinds and self._kinds[entry.kind].early))
        failures = []
        for position, entry in enumerate(entries):
            kind = self._kinds.get(entry.kind)
            try:
                if kind is None:
                    raise TypeError("its kind is unknown")
                if not rebooted or kind.survives_reboot:
                    kind.undo(**entry.data)
            except TypeError as error:  # also of a known kind whose data a newer version has extended
                left = 0 if past_unknown else len(entries) - position - 1
                failures.append(_not_understood(entry, error, left, self.version))
                if not past_unknown:
                    break
            except (OSError, IcbenchError, ValueError) as error:
                failures.append(f"{entry.kind} {entry.data} could not be undone: {error}")
            else:
                self.done(entry.number)
        return failures

    def close(self) -> None:
        """Closes the file. The journal cannot be used afterwards. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
