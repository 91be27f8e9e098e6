# SPDX-License-Identifier: BSD-3-Clause
"""The undo log: how each change is undone, on disk before the change is made.

A journal is a file of JSON lines: the owner first, then ``{"entry": n, "kind": …, "data": {…}}`` before each change and
``{"done": n}`` once it has been undone. A last line without an end belongs to a change that was never made, and the
next one overwrites it. Another line that cannot be read is damage, and reported.

The journal is its process' alone: a forked child records and undoes nothing.

Undoing needs no disk space: a change that is undone but could not be marked is undone once more, which does no harm.
Each entry is undone independently. An entry that cannot be undone, such as one of a newer version, is reported.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, make_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from pytest_icbench.errors import IcbenchError, ProvisionError
from pytest_icbench.host.entry_checks import Check, Scope
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.text_files import MOST_STORED_BYTES, open_regular
from pytest_icbench.version import package_version

SCHEMA = 1
Undo = Callable[..., None]


@dataclass(frozen=True, slots=True)
class UndoKind:
    """The way in which one kind of change is undone.

    Attributes:
        undo: called with the entry's data as keyword arguments, of the types of its parameters; idempotent; raises
            OSError or IcbenchError on failure.
        early: whether it is undone before all other kinds, at any position (processes hold what those free).
        survives_reboot: whether the change outlives the boot in which it was made.
        checks: for keys of the data, whether a session may have written the value; other keys are harmless.
    """

    undo: Undo
    early: bool = False
    survives_reboot: bool = False
    checks: Mapping[str, Check] = field(default_factory=dict)


@cache
def _parameters(undo: Undo) -> type[Any]:
    """Returns a dataclass of an undo function's parameters, by which the codec checks an entry's data."""
    hints = get_type_hints(undo)
    members: list[tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(undo).parameters.items():
        default = MISSING if parameter.default is parameter.empty else parameter.default
        members.append((name, hints.get(name, Any), field(default=default)))
    return make_dataclass("Data", members, namespace={"EXACT": True})


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


def check_process(pid: int) -> None:
    """Raises ProvisionError in a child that was forked from the process with this id, which holds a session."""
    if os.getpid() != pid:
        raise ProvisionError(
            f"process {os.getpid()} was forked from process {pid}, which alone may change the host and undo it: measure"
            " outside of forked children, and leave --forked out"
        )


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

    def __str__(self) -> str:
        kind = self.kind if self.kind.isidentifier() else repr(self.kind)
        return _short(f"{kind} {self.data}")


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"


@dataclass(frozen=True, slots=True)
class _EntryLine:
    entry: int
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _DoneLine:
    done: int


@dataclass(slots=True)
class _Content:
    """The content of a journal's file.

    Attributes:
        owner: None if it has none, or one that cannot be read.
        version: version of the package that made it; None if it has none.
        entries: the changes that are not undone yet, by number.
        last: the highest number in use.
        odd: one sentence for each complete line that does not belong in a journal.
    """

    owner: Owner | None = None
    version: str | None = None
    entries: dict[int, Entry] = field(default_factory=dict)
    last: int = 0
    odd: list[str] = field(default_factory=list)

    def add(self, value: Any, where: str) -> None:
        """Adds a line. Raises DamagedData."""
        if isinstance(value, dict) and "owner" in value:
            version = value.get("version")
            self.version = version if isinstance(version, str) and re.fullmatch(r"[\w.+-]{1,50}", version) else None
            with suppress(DamagedData):  # the lock shows whether it is alive
                self.owner = decode(Owner, value["owner"], where)
        elif isinstance(value, dict) and "done" in value:
            self.entries.pop(decode(_DoneLine, value, where).done, None)
        else:
            line = decode(_EntryLine, value, where)
            self.last = max(self.last, line.entry)
            self.entries[line.entry] = Entry(line.entry, line.kind, dict(line.data))


def _parse(text: str, path: Path) -> _Content:
    """Parses the whole lines of a journal."""
    content = _Content()
    for number, line in enumerate(text.split("\n")[:-1], 1):
        where = f"line {number} of {path}"
        try:
            content.add(json.loads(line), where)
        except RecursionError:
            content.odd.append(f"{where}: nested too deeply")
        except DamagedData as error:
            content.odd.append(str(error))
        except ValueError:
            if line:
                content.odd.append(f"{where}: damaged, not valid JSON")
    return content


class Journal:
    """The undo log of one session. Safe to use from several threads.

    Args:
        path: its file, in the session's directory. A missing file is created with its header; an existing one is read
            (recovery). An empty one, of a session that was killed at its start, has no owner.
        kinds: the ways in which changes are undone, by an entry's kind.
        base: the directory that holds /sys and /proc.
    """

    def __init__(self, path: Path, kinds: Mapping[str, UndoKind], *, base: Path = Path("/")) -> None:
        self.path = path
        self._scope = Scope(path.parent, base)
        self._kinds = kinds
        self._lock = threading.Lock()
        self._pid = os.getpid()
        new = not path.exists()
        data = b""
        if not new:
            with open_regular(path) as file:
                data = file.read(MOST_STORED_BYTES)
        #: The bytes of whole lines.
        self._size = data.rfind(b"\n") + 1
        content = _parse(data[: self._size].decode(errors="replace"), path)
        self._entries, self._last, self._odd = content.entries, content.last, content.odd
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if new:
            content.owner, content.version = Owner.current(), package_version()
            header = {"schema": SCHEMA, "version": content.version, "owner": asdict(content.owner)}
            self._append(header, sync=True)
        self.owner, self.version = content.owner, content.version
        #: One sentence for each entry that this version does not understand or refuses; set by ``undo_all``.
        self.refused: list[str] = []

    def _append(self, value: dict[str, Any], *, sync: bool) -> None:
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        with suppress(OSError):
            os.ftruncate(self._file, self._size)  # without what a failed write has left
        if os.write(self._file, line) != len(line):
            raise OSError(errno.ENOSPC, f"the journal {self.path} cannot be written: no space left")
        self._size += len(line)
        if sync:
            os.fsync(self._file)

    def record(self, kind: str, **data: Any) -> int:
        """Records on disk how a change is undone. To be called *before* the change.

        ``data``: plain JSON data, the undo function's keyword arguments. Returns the number with which ``done`` is
        called once the change has been undone. Raises OSError if the disk is full, or if the file was removed: the
        change could not be undone after a crash. Raises ProvisionError in a forked child.
        """
        check_process(self._pid)
        with self._lock:
            if not os.fstat(self._file).st_nlink:
                raise FileNotFoundError(errno.ENOENT, f"the journal {self.path} has vanished: find out what removes it")
            self._last += 1  # also if writing the line fails: only its end may be missing
            entry = Entry(self._last, kind, data)
            self._append({"entry": entry.number, "kind": kind, "data": data}, sync=True)
            self._entries[entry.number] = entry
            return entry.number

    def done(self, entry: int) -> None:
        """Drops a change that has been undone, on disk if there is space. An unknown number is ignored."""
        with self._lock:
            if os.getpid() == self._pid and self._entries.pop(entry, None) is not None:
                with suppress(OSError):
                    self._append({"done": entry}, sync=False)

    def pending(self) -> list[Entry]:
        """Returns the changes that are still to be undone, in the order of their recording."""
        with self._lock:
            return [self._entries[number] for number in sorted(self._entries)]

    def undo_all(self) -> list[str]:
        """Undoes the pending changes, the latest first. It goes on after one that cannot be undone.

        Returns one sentence for each entry that could not be undone, and stays in the journal, and for each odd line.
        """
        self.refused = []
        failures = self._undo(self.pending())
        odd = [self._not_understood(sentence) for sentence in self._odd]
        self.refused += odd
        return failures + odd

    def undo(self, numbers: Iterable[int]) -> list[str]:
        """Undoes only these entries, as ``undo_all`` does. Returns one sentence for each failure."""
        selected = set(numbers)
        return self._undo([entry for entry in self.pending() if entry.number in selected])

    def _undo(self, pending: list[Entry]) -> list[str]:
        entries = pending[::-1] if os.getpid() == self._pid else []
        entries.sort(key=lambda entry: not (entry.kind in self._kinds and self._kinds[entry.kind].early))
        failures = []
        for entry in entries:
            try:
                self._undo_one(entry)
            except DamagedData as error:
                failures.append(self._not_understood(str(error)))
                self.refused.append(failures[-1])
            except (OSError, IcbenchError) as error:
                failures.append(f"{entry} could not be undone: {error}")
            except Exception as error:  # the other changes are undone after any error
                failures.append(f"{entry} could not be undone: {type(error).__name__}: {error}")
            else:
                self.done(entry.number)
        return failures

    def _undo_one(self, entry: Entry) -> None:
        """Undoes a change. Raises DamagedData if this version does not understand it, else what its function raises."""
        kind = self._kinds.get(entry.kind)
        if kind is None:
            raise DamagedData(f"{entry}: its kind is unknown")
        data = decode(_parameters(kind.undo), entry.data, str(entry))
        for name, check in kind.checks.items():
            if not check(getattr(data, name), self._scope):
                raise DamagedData(f"{entry}: no session writes such a {name}")
        rebooted = self.owner is not None and self.owner.boot != boot_id()
        if not rebooted or kind.survives_reboot:
            kind.undo(**{member.name: getattr(data, member.name) for member in fields(data)})

    def _not_understood(self, sentence: str) -> str:
        """Returns the message about an entry or line that this version cannot undo."""
        maker = f"pytest-icbench {self.version} or later" if self.version else "the pytest-icbench that made it"
        remedy = f"run `icbench recover` of {maker}"
        if self.version == package_version():
            remedy = "undo it by hand, then run `icbench recover --forget`"
        return f"this version cannot undo {sentence}: {remedy}"

    def close(self) -> None:
        """Closes the file. The journal cannot be used afterwards. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
