# SPDX-License-Identifier: BSD-3-Clause
"""The subcommands of ``icbench`` on damaged files and with odd arguments: an exit status and printable lines."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest

from pytest_icbench.cli import bisect, main
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import UsageError
from pytest_icbench.host import host_session, recover
from pytest_icbench.host.findings import Finding
from pytest_icbench.store.history_file import append, make_entry
from pytest_icbench.store.stored_run import read_run
from pytest_icbench.testbed import host_examination, undo_kinds
from tests.hostile import mutated_text
from tests.unit.host.test_entry_checks import RIGHT, SESSION, recording
from tests.unit.host.test_entry_checks import RUN as RUN_DIR
from tests.unit.store.test_hostile_run import NAMES, RUN, damaged


def _files(top: Path) -> None:
    """Makes a run, a baseline of it, a history and a topology."""
    shutil.copytree(RUN, top / "run")
    with redirect_stdout(io.StringIO()):
        main.main(["accept", "main", "--all", "--run", str(top / "run"), "--baselines", str(top / "b")])
        main.main(["topology", "2vs2"])
    for program in ("fast", "slow"):
        (top / program).symlink_to("/bin/true")
    (top / "between.txt").write_text("".join(f"{top.parent}/top/fast\n" for _ in range(3)))
    dead = top / "sessions" / SESSION
    dead.mkdir(parents=True)
    lines: list[dict[str, Any]] = [{"schema": 1, "owner": None}]
    lines += [{"entry": number, "kind": kind, "data": data} for number, (kind, data) in enumerate(RIGHT, 1)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (dead / "journal").write_text(text.replace(RUN_DIR, str(top.parent / "top" / "sessions")))
    for directory in (dead.parent, dead):
        directory.chmod(0o700)
    entries = [make_entry(item.measurement, "r") for item in read_run(top / "run").results]
    append(top / "h.jsonl", [entry for entry in entries if entry is not None] * 3)


#: The command line of each subcommand, in the directory of ``_files``.
COMMANDS: dict[str, list[str]] = {
    "report": ["report", "run"],
    "report --csv": ["report", "run", "--csv", "out.csv", "-q"],
    "accept": ["accept", "main", "--all", "--run", "run", "--baselines", "b"],
    "compare": ["compare", "main", "run", "--baselines", "b", "--case", "*"],
    "history": ["history", "h.jsonl"],
    "hlog": ["hlog", "run/results.jsonl", "out.hlog"],
    "waive": ["waive", "*", "--reason", "known", "--until", "2031-01-31", "--baselines", "b"],
    "topology": ["topology", "2vs2"],
    "baseline": ["baseline", "main", "*", "--baselines", "b"],
    "baseline --keep": ["baseline", "main", "--keep", "1", "--baselines", "b"],
    "baseline --drop": ["baseline", "main", "*", "--drop", "--baselines", "b"],
    "baseline --session": ["baseline", "main", "*", "--drop", "--session", "20", "--baselines", "b"],
    "bisect": ["bisect", "ovs", "fast", "slow", "--between", "between.txt"],
    "doctor": ["doctor", "--switch=sriov,veth", "--pf=eth0", "--json"],
    "recover": ["recover", "--forget"],
}
#: Commands that write what others read, or read no file: only their arguments are changed.
_ARGUMENTS_ALONE = ("topology", "doctor")
#: The one file that a command reads, where it is none of a run, a baseline or a history.
_READS = {"bisect": "between.txt", "recover": f"sessions/{SESSION}/journal"}


def _no_launch(*_arguments: object) -> NoReturn:
    raise UsageError("this host is left alone")


def _cards(pf: str | None, switches: Mapping[str, type[Switch]], asked: Collection[str]) -> list[Finding]:
    """Examines the switch of cards alone: the rest of a host is the same for all arguments."""
    return list(
        host_examination._switches({"sriov": switches["sriov"]}, [name for name in asked if name == "sriov"], pf)
    )


#: Made once: all calls are parsed by the same.
_parser = cache(main.parser)


@contextmanager
def _harmless(top: Path) -> Iterator[None]:
    """Keeps commands off the host: nothing is launched, and of a recovery all is checked and nothing undone."""
    noted = {name: recording(name, []) for name in undo_kinds.UNDO_KINDS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bisect, "side_by_side", _no_launch)
        patch.setattr(host_examination, "examine", _cards)
        patch.setattr(host_session, "RUN_DIR", top / "sessions")
        patch.setattr(undo_kinds, "UNDO_KINDS", noted)
        patch.setattr(recover, "kill_session", lambda _session: None)
        patch.setattr(main, "parser", _parser)
        yield


@contextmanager
def _inside(directory: Path) -> Iterator[None]:

    old = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(old)


def _damage(name: str, top: Path, chance: random.Random) -> None:
    """Damages one of the files that a command reads."""
    if (alone := _READS.get(name)) is not None:
        text = mutated_text((top / alone).read_text(encoding="utf-8"), chance)
        (top / alone).write_bytes(text.encode(errors="surrogatepass"))
        return
    kind = chance.randrange(3)
    if kind == 0:
        path = top / "run" / chance.choice(NAMES)
        path.write_bytes(damaged(path.read_text(encoding="utf-8"), chance))
        return
    path = chance.choice(sorted((top / "b").rglob("*.json"))) if kind == 1 else top / "h.jsonl"
    text = path.read_text(encoding="utf-8")
    place = chance.randrange(len(text))  # a file can be long: the change is within 2,000 letters
    part = mutated_text(text[place : place + 2000], chance)
    path.write_bytes((text[:place] + part + text[place + 2000 :]).encode(errors="surrogatepass"))


def _state(top: Path) -> dict[str, tuple[int, bytes]]:
    """Returns modes and contents of all that is below a directory."""
    return {
        str(path.relative_to(top)): (path.stat().st_mode, b"" if path.is_dir() else path.read_bytes())
        for path in top.rglob("*")
    }


def _put_back(top: Path, pristine: Path, before: Mapping[str, tuple[int, bytes]]) -> None:
    """Makes a copy of a directory what it was: most calls change one file or none."""
    now = _state(top)
    if {name: mode for name, (mode, _) in now.items()} != {name: mode for name, (mode, _) in before.items()}:
        shutil.rmtree(top, ignore_errors=True)
        shutil.copytree(pristine, top)
        return
    for name, (_, content) in before.items():
        if now[name][1] != content:
            (top / name).write_bytes(content)


def called(argv: list[str]) -> tuple[int, str]:
    """Calls the command in this process. Returns its exit status and what it wrote."""
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(written):
        try:
            status = main.main(argv)
        except SystemExit as end:
            status = int(end.code or 0)
    return status, written.getvalue()


def tried_command(name: str, tries: int, seed: int) -> tuple[int, dict[str, str]]:
    """Returns how many calls were refused, and what came else than an exit status and printable lines, by kind."""
    refused = 0
    wrong: dict[str, str] = {}
    with TemporaryDirectory(prefix="hostile-") as directory:
        pristine, top = Path(directory) / "pristine", Path(directory) / "top"
        pristine.mkdir()
        _files(pristine)
        shutil.copytree(pristine, top)
        before = _state(top)
        for number in range(tries):
            chance = random.Random(f"{name} {seed} {number}")
            _put_back(top, pristine, before)
            argv = list(COMMANDS[name])
            if name in _ARGUMENTS_ALONE or chance.random() < 0.3:
                place = chance.randrange(1, len(argv))
                argv[place] = mutated_text(argv[place], chance).replace("\0", "")
            else:
                _damage(name, top, chance)
            try:
                with _inside(top), _harmless(top):
                    status, said = called(argv)
            except Exception as error:
                trace = error.__traceback__
                while trace is not None and trace.tb_next is not None:
                    trace = trace.tb_next
                where = f"{trace.tb_frame.f_code.co_filename[-40:]}:{trace.tb_lineno}" if trace else ""
                wrong.setdefault(
                    f"{type(error).__name__} {where}", f"{ascii(str(error))[:150]} ({argv}, input {number})"
                )
                continue
            refused += status != 0
            odd = [line for line in said.split("\n") if not line.isprintable()]
            if odd:
                wrong.setdefault("control characters", f"{ascii(odd[0])[:150]} ({argv}, input {number})")
    return refused, wrong


@pytest.mark.parametrize("name", COMMANDS)
def test_a_hostile_call_ends_in_a_sentence(name: str) -> None:
    refused, wrong = tried_command(name, 40, 1)
    assert wrong == {}
    assert refused > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_more_hostile_calls_end_in_a_sentence(name: str) -> None:
    assert tried_command(name, 150, 2)[1] == {}
