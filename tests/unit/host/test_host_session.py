# SPDX-License-Identifier: BSD-3-Clause
"""Sessions: names, refusals, and probing, which changes nothing."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.journal import Journal
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS


def test_without_root_it_is_a_skip_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unsupported, match="needs root: run pytest as root"):
        HostSession(UNDO_KINDS, run_dir=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="sessions need root")
def test_a_disk_without_room_for_the_journal_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Journal, "_append", full)
    with pytest.raises(
        ProvisionError, match=r"/run, where .* cannot be written \(No space left on device\): make room"
    ):
        HostSession(UNDO_KINDS, run_dir=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_probing_makes_nothing() -> None:
    before = Path("/run/icbench").exists()
    session = HostSession.probing(SessionOptions(binaries={"ovs": "/opt/ovs"}))
    assert not session.live
    assert session.binary("ovs") == Path("/opt/ovs")
    assert session.binary("vpp") is None
    assert not session.dir.exists()
    session.close()
    assert Path("/run/icbench").exists() == before


def test_names_carry_the_session_and_fit() -> None:
    session = HostSession.probing()
    assert re.fullmatch("[a-z0-9]{6}", session.id)
    assert session.name("n0") == f"icb{session.id}-n0"
    assert session.name_link("br0abcd") == f"ic{session.id}br0abcd"
    assert len(session.name_link("br0abcd")) == 15
    with pytest.raises(ValueError, match="more than 15 characters"):
        session.name_link("br0abcde")
    with pytest.raises(ValueError, match="more than 32 characters"):
        session.name("x" * 40)
    # A unix socket's path has 107 bytes; what a switch appends has to fit.
    assert len(str(session.dir)) < 30


def test_ids_differ() -> None:
    assert len({HostSession.probing().id for _ in range(50)}) == 50
