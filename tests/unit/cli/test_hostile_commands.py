# SPDX-License-Identifier: BSD-3-Clause
"""The subcommands of ``icbench`` on damaged files and with odd arguments: an exit status and printable lines."""

from __future__ import annotations

import io
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_icbench.cli import main
from pytest_icbench.store.history import append, entry_of
from pytest_icbench.store.read import read_run
from tests.hostile import mutated_text
from tests.unit.store.test_hostile_run import NAMES, RUN, damaged


def _files(top: Path) -> None:
    """Makes a run, a baseline of it, a history and a topology."""
    shutil.copytree(RUN, top / "run")
    with redirect_stdout(io.StringIO()):
        main.main(["accept", "main", "--all", "--run", str(top / "run"), "--baselines", str(top / "b")])
        main.main(["topology", "2vs2"])
    entries = [entry_of(item.measurement, "r") for item in read_run(top / "run").results]
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
}
#: Commands that write what others read, or read no file: only their arguments are changed.
_ARGUMENTS_ALONE = ("topology",)


@contextmanager
def _inside(directory: Path) -> Iterator[None]:

    old = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(old)


def _damage(top: Path, chance: random.Random) -> None:
    """Damages one of the files."""
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
        for number in range(tries):
            chance = random.Random(f"{name} {seed} {number}")
            shutil.rmtree(top, ignore_errors=True)
            shutil.copytree(pristine, top)
            argv = list(COMMANDS[name])
            if name in _ARGUMENTS_ALONE or chance.random() < 0.3:
                place = chance.randrange(1, len(argv))
                argv[place] = mutated_text(argv[place], chance).replace("\0", "")
            else:
                _damage(top, chance)
            try:
                with _inside(top):
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
