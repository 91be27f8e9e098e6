# SPDX-License-Identifier: BSD-3-Clause
"""The scenario of checkpoint and restore, over a stand-in for CRIU that ends a process and starts it again."""

from __future__ import annotations

import stat
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scenarios import test_checkpoint as scenario

CRIU = """#!{python}
import os, pathlib, subprocess, sys, time
words = dict(zip(sys.argv[2:], sys.argv[3:]))
if sys.argv[1] == "check":
    print({check!r}, file=sys.stderr)
    sys.exit({code})
directory = pathlib.Path(words["-D"])
if sys.argv[1] == "dump":
    (directory / "criu.log").write_text({dump!r})
    if {dump!r}:
        sys.exit(1)
    pid = int(words["-t"])
    (directory / "pages.img").write_bytes(pathlib.Path(f"/proc/{{pid}}/cmdline").read_bytes().ljust(5000, b"\\0"))
    os.kill(pid, 9)
else:
    time.sleep(0.05)
    command = (directory / "pages.img").read_bytes().rstrip(b"\\0").split(b"\\0")
    none = subprocess.DEVNULL  # as the process had, so that nobody waits for the end of its output
    process = subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True)
    pathlib.Path(words["--pidfile"]).write_text(str(process.pid))
"""


def stand_in(directory: Path, check: str = "Looks good.", code: int = 0, dump: str = "") -> str:
    path = directory / "criu"
    path.write_text(CRIU.format(python=sys.executable, check=check, code=code, dump=dump), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def lives(pid: int) -> bool:
    """Whether there is a process of this number that nobody only has to wait for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_that_is_put_back_answers_again(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    times = scenario.measure(stand_in(tmp_path), images)
    assert times.image_bytes == 5000, "without the log"
    assert times.answer_s > times.restore_s >= 0.05, "the answer is counted from the restore's begin"
    pid = int((images / "pid").read_text(encoding="ascii"))
    deadline = time.monotonic() + 10
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lives(pid)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Runs the scenario twice over a program; returns the properties of its test."""
    monkeypatch.setattr(scenario, "TIMES", 2)
    terminal: Any = SimpleNamespace(disabled=nullcontext)

    def running(criu: str) -> dict[str, Any]:
        monkeypatch.setattr(scenario, "CRIU", criu)
        reported: dict[str, Any] = {}
        scenario.test_checkpoint_and_restore(tmp_path, reported.__setitem__, terminal)
        return reported

    return running


def test_the_medians_are_reported(
    tmp_path: Path, run: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    reported = run(stand_in(tmp_path))
    said = capsys.readouterr().out
    assert "images 0.01 MB" in said
    assert said.endswith("(medians of 2)\n")
    assert list(reported) == [f"icbench.{name}" for name in ("checkpoint_s", "image_bytes", "restore_s", "answer_s")]
    assert reported["icbench.image_bytes"] == 5000
    assert reported["icbench.answer_s"] > reported["icbench.restore_s"] >= 0.05


def test_where_criu_refuses_its_own_words_are_the_reason(tmp_path: Path, run: Callable[[str], Any]) -> None:
    words = "Warn  (criu/kerndat.c:1): old\nError (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds"
    with pytest.raises(pytest.skip.Exception) as skipped:
        run(stand_in(tmp_path, words, 1))
    assert str(skipped.value) == "criu check: Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds"
    with pytest.raises(pytest.skip.Exception, match=r"is not installed \(apt-get install criu\)"):
        run(str(tmp_path / "none"))


def test_a_checkpoint_that_fails_has_the_words_of_its_log(tmp_path: Path, run: Callable[[str], Any]) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        run(stand_in(tmp_path, dump="(00.01) Error (criu/sk-inet.c:9): no such socket\n"))
    assert str(failed.value).endswith("dump: (00.01) Error (criu/sk-inet.c:9): no such socket")
