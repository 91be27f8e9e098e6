# SPDX-License-Identifier: BSD-3-Clause
"""A run's hold on a host: lock, journal, directory, names. Its changes are undone when it closes."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.cleanup import remove_tree
from pytest_icbench.host.inherited import put_aside
from pytest_icbench.host.journal import Journal, UndoKind
from pytest_icbench.host.lock import HostLock, lock_kernel, make_directory, unlock_kernel
from pytest_icbench.host.node_files import LOGS_MIB, make_tmpfs
from pytest_icbench.host.process import Spawner
from pytest_icbench.host.recover import undo_dead_sessions
from pytest_icbench.host.resource.cpu_meter import CpuMeter
from pytest_icbench.host.resource.hugepages import HugePages, memory_kib
from pytest_icbench.host.root import Root
from pytest_icbench.host.signals import shield_signals

#: The directory of all sessions' files: a tmpfs, emptied by a reboot.
RUN_DIR = Path("/run/icbench")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
#: Processes and threads of a node unless the user says otherwise: no server that is measured has a tenth of them.
NODE_PIDS = 4096
_LINK_NAME_MAX = 15
_NAME_MAX = 32


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The user's choices for a session, as plain data that another host takes as well.

    Attributes:
        hugepage_size_kib: 2048 or 1048576.
        binaries: paths by switch or tool name.
        pf: interface or PCI address of the card with SR-IOV that may be used.
        configs: configurations by switch.
        node_memory_mib: bound of a node's memory; None: half of the host's.
        node_pids: bound of a node's processes and threads.
    """

    hugepage_size_kib: int = 2048
    binaries: Mapping[str, str] = field(default_factory=dict)
    pf: str | None = None
    configs: Mapping[str, Any] = field(default_factory=dict)
    node_memory_mib: int | None = None
    node_pids: int = NODE_PIDS


_DEFAULTS = SessionOptions()


class HostSession:
    """Holds the host from its constructor to ``close``. A context manager.

    The constructor takes the lock, undoes the changes of dead sessions, and opens a journal.

    Args:
        kinds: the ways in which changes are undone, a dead session's too (``testbed.undo_kinds``).
        options: the user's choices.
        root: the running machine, or a recorded tree.
        run_dir: the directory of all sessions' files.

    Attributes:
        id: six characters of ``[a-z0-9]``; part of every name that this session gives.
        dir: its private directory, removed with it.
        recovered: one sentence for each dead session whose changes were undone.
        cpu_meter: measures the distance between CPUs and the speed of each.
        warnings: one sentence for each entry of a dead session's journal that this version refuses; reported once.
        precedence: the precedence of its processes over others (``driver.node.precedence``).
        node_memory_mib, node_pids: the bounds of each node.
        idle: what its idle CPUs do, ``poll`` or ``halt``.
        progress: shows how far a long step is, as a few words.
        poll_idle: makes its idle CPUs poll, or lets them halt (``driver.node.idle_polling``).

    Raises Unsupported without root, SessionBusyError (a UsageError) if another session runs, OpenDirectoryError (a
    UsageError) if others can write to ``run_dir``, ProvisionError if the remains of a dead one cannot be removed.
    """

    journal: Journal
    recovered: list[str]
    warnings: list[str]
    precedence: str
    _lock: HostLock | None
    _kernel_lock: int | None

    def __init__(
        self,
        kinds: Mapping[str, UndoKind],
        options: SessionOptions = _DEFAULTS,
        *,
        root: Root | None = None,
        run_dir: Path = RUN_DIR,
    ) -> None:
        if os.geteuid() != 0:
            raise Unsupported("changing the host needs root: run pytest as root")
        self._prepare(options, root, run_dir)
        with ExitStack() as undo:
            undo.enter_context(put_aside())
            self._lock = HostLock(run_dir / "lock")
            self._take(run_dir, kinds)
            self._inherited = undo.pop_all()

    def _take(self, run_dir: Path, kinds: Mapping[str, UndoKind]) -> None:
        """Undoes what dead sessions left and opens the journal. Releases the lock after an error."""
        assert self._lock is not None
        try:
            recovery = undo_dead_sessions(run_dir, kinds, once=True)
            if recovery.failures:
                raise ProvisionError(
                    "changes of an earlier session could not be undone; run `icbench recover`:\n"
                    + "\n".join(recovery.failures)
                )
            # Only now: processes of a dead session may have held it.
            self._kernel_lock = lock_kernel() if run_dir == RUN_DIR else None
            self.recovered = recovery.sentences()
            self.warnings = recovery.refused
            self.journal = self._open_journal(kinds)
        except BaseException:
            unlock_kernel(self._kernel_lock)
            with suppress(ProvisionError):  # a full disk leaves a directory without a whole journal
                remove_tree(self.dir)
            self._lock.release()
            self._lock = None
            raise

    def _open_journal(self, kinds: Mapping[str, UndoKind]) -> Journal:
        """Makes the session's directory and returns its journal. Raises ProvisionError if they cannot be written."""
        try:
            make_directory(self.dir)
            journal = Journal(self.dir / "journal", kinds, base=self.root.base)
            journal.record("processes", session=self.id)
        except OSError as error:
            raise ProvisionError(
                f"{self.dir.parent}, where sessions record what they change, cannot be written ({error.strerror}):"
                " make room there"
            ) from None
        return journal

    def _prepare(self, options: SessionOptions, root: Root | None, run_dir: Path) -> None:
        self.id = "".join(secrets.choice(_ALPHABET) for _ in range(6))
        self.dir = run_dir / self.id
        self.root = root or Root()
        self.binaries: Mapping[str, Path] = {name: Path(path) for name, path in options.binaries.items()}
        self.configs: dict[str, Mapping[str, Any]] = dict(options.configs)
        self.hugepage_size_kib, self.pf = options.hugepage_size_kib, options.pf
        self.node_memory_mib = options.node_memory_mib or memory_kib(self.root).get("MemTotal", 0) // 2048
        self.node_pids = options.node_pids
        self.progress: Callable[[str], None] = lambda _: None
        self.poll_idle: Callable[[bool], None] = lambda _: None
        self.spawner = Spawner(self.id, self.dir)
        self.hugepages = HugePages()
        self.cpu_meter = CpuMeter(self.spawner, self.dir / "distance.log")
        #: The NICs that are uplinks now: (network namespace, name there) by name.
        self.nics: dict[str, tuple[str, str]] = {}
        self.recovered = []
        self.warnings = []
        self.precedence = "none"
        self.idle = "halt"
        self._noted: dict[tuple[str, str], int] = {}
        self._making_logs = threading.Lock()
        self._lock = None
        self._kernel_lock = None
        self._inherited = ExitStack()
        self._pid = os.getpid()

    @classmethod
    def probing(cls, options: SessionOptions = _DEFAULTS, *, root: Root | None = None) -> HostSession:
        """Returns a session for questions only: without lock, journal and directory. It needs no root."""
        session = cls.__new__(cls)
        session._prepare(options, root, RUN_DIR)
        return session

    @property
    def live(self) -> bool:
        """Whether the session holds the host, which a probing session never does."""
        return self._lock is not None

    def name(self, suffix: str) -> str:
        """Returns ``icb<id>-<suffix>``, at most 32 characters. Raises ValueError if the suffix is too long."""
        return self._checked(f"icb{self.id}-{suffix}", _NAME_MAX)

    def name_link(self, suffix: str) -> str:
        """Returns a link's name, ``ic<id><suffix>``. Raises ValueError if the suffix has more than 7 characters."""
        return self._checked(f"ic{self.id}{suffix}", _LINK_NAME_MAX)

    def _checked(self, name: str, most: int) -> str:
        if len(name) > most:
            raise ValueError(f"the name {name} has more than {most} characters")
        return name

    def binary(self, name: str) -> Path | None:
        """Returns the user's binary of that name, None if PATH is to be searched."""
        return self.binaries.get(name)

    @contextmanager
    def using(self, binaries: Mapping[str, Path], configs: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
        """Replaces the programs and configurations of these names within the block."""
        before = self.binaries, self.configs
        self.binaries, self.configs = {**self.binaries, **binaries}, {**self.configs, **configs}
        try:
            yield
        finally:
            self.binaries, self.configs = before

    @property
    def logs(self) -> Path:
        """The directory of the logs of processes in nodes, of bounded size, made at the first call.

        Raises ProvisionError.
        """
        path = self.dir / "log"
        with self._making_logs:
            if not path.exists():
                make_tmpfs(path, LOGS_MIB)
        return path

    def note(self, kind: str, key: str, **data: Any) -> None:
        """Records how to remove a named object, before it is created. ``forget`` takes the same kind and key."""
        self._noted[kind, key] = self.journal.record(kind, **data)

    def forget(self, kind: str, key: str) -> None:
        """Drops the record of an object that has been removed. Idempotent."""
        entry = self._noted.pop((kind, key), None)
        if entry is not None:
            self.journal.done(entry)

    def close(self) -> None:
        """Undoes all remaining changes and releases the lock. Signals wait until its end. Idempotent.

        A forked child closes nothing.

        Raises ProvisionError with a sentence for each change that could not be undone; ``icbench recover`` tries again.
        """
        if self._lock is None or os.getpid() != self._pid:
            return
        with shield_signals():
            self.cpu_meter.close()
            failures = self.journal.undo_all()
            self.journal.close()
            if not failures:
                try:
                    remove_tree(self.dir)
                except ProvisionError as error:
                    failures.append(str(error))
            unlock_kernel(self._kernel_lock)
            self._lock.release()
            self._lock = None
            self._inherited.close()
        if failures:
            raise ProvisionError(
                "changes of the host could not be undone; run `icbench recover`:\n" + "\n".join(failures)
            )

    def __enter__(self) -> HostSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with nullcontext() if kind is None else suppress(ProvisionError):  # the first error says more
            self.close()
