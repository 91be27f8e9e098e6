# SPDX-License-Identifier: BSD-3-Clause
"""Kernel options (sysctl) that are set while a rig runs, and restored while it is paused and after its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.host.journaled_changes import Changes, Holder
from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.root import Root
from pytest_icbench.model.candidate import file_of


def check_options(root: Root, options: Mapping[str, str], where: str) -> None:
    """Raises UsageError for an option that this kernel lacks, or that has the value already."""
    for option, value in options.items():
        before = root.read(file_of(option))
        if before is None:
            raise UsageError(f"{where}: this kernel has no option {option}; see sysctl -a")
        if before.split() == value.split():
            raise UsageError(f"{where}: {option} is {value} here already, so nothing would differ; give another value")


class KernelOptions:
    """The kernel options of a rig. Each is journaled before it is set, so it is restored after SIGKILL, too."""

    def __init__(self, session: Holder, options: Mapping[str, str]) -> None:
        self._changes = Changes(session)
        self._options = options

    def set(self) -> None:
        """Sets the options. Raises ProvisionError if the kernel refuses a value, after restoring those set by then."""
        root = self._changes.root
        try:
            for option, value in self._options.items():
                self._changes.write(file_of(option), value)
                if (now := root.read(file_of(option)) or "").split() != value.split():
                    raise ProvisionError(
                        f"kernel option {option} is {now} after {value} was written: give another value"
                    )
        except OSError as error:
            self.restore()
            raise ProvisionError(f"kernel option {option} cannot be {value}: {error.strerror}") from None
        except ProvisionError:
            self.restore()
            raise

    def set_within(self, namespaces: Iterable[str]) -> None:
        """Sets the options of the network in a rig's namespaces, too, where these have them. They end with the rig."""
        network = {Path(file_of(option)): value for option, value in self._options.items() if option.startswith("net")}
        for namespace in namespaces if network else ():
            with enter_netns(namespace):
                for path, value in network.items():
                    _write(path, value)

    def restore(self) -> None:
        """Restores the old values. Idempotent. Raises ProvisionError for what remains."""
        self._changes.undo("a kernel option")


def _write(path: Path, value: str) -> None:
    """Writes an option of the thread's namespace. One of the whole host is missing there, or read-only."""
    try:
        if path.read_text(encoding="ascii").split() != value.split():
            path.write_text(value, encoding="ascii")
    except OSError:
        return
