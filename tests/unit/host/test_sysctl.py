# SPDX-License-Identifier: BSD-3-Clause
"""Kernel options of a rig: set, restored, restored after a death, and refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.host.cleanup import UNDO_KINDS
from pytest_icbench.host.journal import Journal
from pytest_icbench.host.resource.sysctl import KernelOptions, check_options
from pytest_icbench.host.root import Root
from pytest_icbench.model.candidate import file_of

POLL = "/proc/sys/net/core/busy_poll"


@pytest.fixture
def session(tmp_path: Path) -> Any:
    """A session on a recorded tree."""
    for name, text in ((POLL, "0\n"), ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")):
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "abc123").mkdir()
    return SimpleNamespace(
        root=Root(tmp_path), journal=Journal(tmp_path / "abc123/journal", UNDO_KINDS, base=tmp_path), dir=tmp_path
    )


def test_an_option_holds_while_it_is_set_and_can_be_set_again(session: Any) -> None:
    options = KernelOptions(session, {"net.core.busy_poll": "50"})
    for _ in range(2):
        options.set()
        assert session.root.read(POLL) == "50"
        options.restore()
        assert session.root.read(POLL) == "0"
        options.restore()
    assert session.journal.pending() == []


def test_a_dead_sessions_journal_restores_it(session: Any) -> None:
    KernelOptions(session, {"net.core.busy_poll": "50"}).set()
    assert Journal(session.journal.path, UNDO_KINDS, base=session.root.base).undo_all() == []
    assert session.root.read(POLL) == "0"


@pytest.mark.parametrize("error", [None, OSError(22, os.strerror(22))])
def test_a_value_that_the_kernel_refuses_leaves_nothing_behind(
    session: Any, monkeypatch: pytest.MonkeyPatch, error: OSError | None
) -> None:
    written = Root.write

    def write(root: Root, name: str, text: str) -> None:
        if text == "lots" and error is not None:
            raise error
        written(root, name, "7" if text == "lots" else text)

    monkeypatch.setattr(Root, "write", write)
    options = KernelOptions(session, {"net.core.busy_poll": "50", "net.ipv4.tcp_rmem": "lots"})
    reported = "cannot be lots: Invalid argument" if error else "is 7 after lots was written"
    with pytest.raises(ProvisionError, match=f"^kernel option net.ipv4.tcp_rmem {reported}"):
        options.set()
    assert session.root.read(POLL) == "0"
    assert session.journal.pending() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"net.core.nix": "1"}, "this kernel has no option net.core.nix; see sysctl -a"),
        ({"net.core.busy_poll": "0"}, "net.core.busy_poll is 0 here already, so nothing would differ"),
        ({"net.ipv4.tcp_rmem": "4096 131072 6291456"}, "net.ipv4.tcp_rmem is 4096 131072 6291456 here already"),
    ],
)
def test_what_would_change_nothing_is_refused_before(session: Any, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {sentence}"):
        check_options(session.root, options, "here")


def test_names_with_slashes_keep_their_dots() -> None:
    assert file_of("net.core.busy_poll") == POLL
    assert file_of("net/ipv4/conf/eth0.5/rp_filter") == "/proc/sys/net/ipv4/conf/eth0.5/rp_filter"
