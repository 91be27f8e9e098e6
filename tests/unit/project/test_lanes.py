# SPDX-License-Identifier: BSD-3-Clause
"""Lanes run each test once, side by side where that is safe, and name what failed."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.model.endpoint import ATTACH

ROOT = Path(__file__).parents[3]
LANES = ("test", "test-all", "test-ci")


@pytest.fixture
def lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lanes", ROOT / "scripts" / "lanes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lanes", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CACHE", tmp_path / "lanes")
    return module


def collected(*arguments: str) -> set[str]:
    """Returns the ids of the tests that pytest selects."""
    argv = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 5), done.stdout[-2000:] + done.stderr[-2000:]
    return {line for line in done.stdout.splitlines() if "::" in line}


def takes(part: Any, file: Path) -> bool:
    """Whether a part's command has a file among its paths and does not leave it out."""
    path = str(file.relative_to(ROOT))
    below = [word for word in part.command if path == word or path.startswith(f"{word}/")]
    return bool(below) and f"--ignore={path}" not in part.command


def test_a_test_is_in_one_of_two_lanes_by_its_mark(lanes: ModuleType) -> None:
    marks = {"test": "not slow", "test-all": "slow", "test-ci": ""}
    assert marks == lanes.LANES


def test_each_test_belongs_to_one_part_of_a_lane(lanes: ModuleType) -> None:
    """Those on the host by their mark, so a file has at most one."""
    chosen = lanes.lane("test-ci", ())
    computes, host, own_host = (parts[0] for parts in chosen.beside)
    places = ("not own_host and not alone", "own_host", "alone")
    assert [part.command[part.command.index("-m") + 1] for part in (host, own_host, chosen.alone)] == [*places]
    files = [file for folder in ("unit", "plugin", "host") for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    for file in files:
        marks = set(re.findall(r"pytest\.mark\.(own_host|alone)\b", file.read_text(encoding="utf-8")))
        on_host = [takes(part, file) for part in (host, own_host, chosen.alone)]
        assert len(marks) <= 1, file
        assert on_host == [not takes(computes, file)] * 3, file
        assert file == Path(__file__) or not marks or all(on_host), file


@pytest.mark.parametrize("name", LANES)
def test_a_part_selects_the_tests_of_its_lane(lanes: ModuleType, name: str) -> None:
    chosen = lanes.lane(name, ("-k", "foo"))
    parts = [part for parts in (*chosen.beside, (chosen.alone,)) for part in parts]
    tests = [part for part in parts if part.tests]
    assert all(lanes.LANES[name] in " ".join(part.command) for part in tests)
    assert all(part.command[-2:] == ("-k", "foo") for part in tests)
    assert [part.name for part in parts if not part.tests] == ([] if name == "test-all" else ["test-c", "lint"])


def test_packets_pass_every_switch_in_the_first_lane() -> None:
    files = ("tests/host/test_switches.py", "tests/host/test_switch_counters.py", "tests/host/test_attach.py")
    kept = ("test_jumbo_frames[", "test_counters_agree_with_the_endpoints[", "::test_containers_are_as_before[")
    quick, every = (
        {test for test in collected(*marks, *files) if any(name in test for name in kept)}
        for marks in (("-m", "not slow"), ())
    )
    assert quick == every
    assert {f"{files[0]}::test_jumbo_frames[{name}]" for name in builtin_switches() if name != ATTACH} <= quick
    assert all(any(name in test for test in quick) for name in kept)


def program(lanes: ModuleType, name: str, code: str) -> Any:
    """Returns a part that runs a program of Python."""
    return lanes.Part(name, (sys.executable, "-c", code), tests=False)


def test_parts_run_side_by_side_and_tell_how_far_they_are(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(lanes, "PROGRESS_S", 0.2)
    flag = tmp_path / "flag"
    waits = f"import os, time; print('[ 50%]', flush=True)\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.1)"
    ends = f"import time; time.sleep(1); open({str(flag)!r}, 'w'); print('second')"
    run = lanes.Run()
    run.run_beside(
        [
            [program(lanes, "a", waits)],
            [program(lanes, "b", ""), program(lanes, "c", ends)],
        ]
    )
    said = capsys.readouterr().out
    assert "a: 50%" in said
    assert said.index("== b,") < said.index("== c,")
    assert run.failed == []


def test_what_computes_has_a_lower_priority(lanes: ModuleType) -> None:
    computes = lanes.lane("test", ()).beside[0]
    assert all(part.command[:3] == ("nice", "-n", "5") for part in computes)


def test_a_part_that_fails_is_named_and_the_rest_runs(lanes: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    run = lanes.Run()
    run.run_beside(
        [
            [
                program(lanes, "bad", "raise SystemExit(3)"),
                program(lanes, "good", "print('next')"),
            ]
        ]
    )
    assert "\nnext" in capsys.readouterr().out
    assert run.failed == ["bad"]


#: The first passes by itself where the second run finds the file that the first run left; the second never does.
TESTS = """
import pathlib, pytest

def test_unsteady():
    there = pathlib.Path(__file__).with_name("seen").exists()
    pathlib.Path(__file__).with_name("seen").touch()
    assert there

@pytest.mark.parametrize("at", range({wrong}))
def test_wrong(at):
    assert False

def test_right():
    assert not pathlib.Path(__file__).with_name("ran").exists()
    pathlib.Path(__file__).with_name("ran").touch()
"""


@pytest.mark.parametrize(("wrong", "workers"), [(0, ()), (1, ()), (3, ()), (1, ("-n2", "--dist=loadfile"))])
def test_what_failed_runs_once_more_by_itself(
    lanes: ModuleType, tmp_path: Path, wrong: int, workers: tuple[str, ...]
) -> None:
    """Without what passed, unless it is too much for chance."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_x.py").write_text(TESTS.format(wrong=wrong))
    options = (f"--rootdir={tmp_path}", f"--config-file={tmp_path}/pytest.ini")
    command = (sys.executable, "-m", "pytest", *options, str(tmp_path / "test_x.py"))
    part, run = lanes.Part("part", command, workers), lanes.Run()
    run.run_beside([[part]])
    assert len(part.failed_tests()) == 1 + wrong
    run.retry()
    bad = [f"test_x.py::test_wrong[{at}]" for at in range(wrong)]
    retried = wrong < lanes.MOST_RETRIED
    assert run.unsteady == (["test_x.py::test_unsteady"] if retried else [])
    assert run.failed == (bad if retried else ["test_x.py::test_unsteady", *bad])


def ended(lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, *parts: Any) -> int:
    """Returns the exit status of a lane of these parts."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(lanes, "lane", lambda *_: lanes.Lane(tuple((part,) for part in parts), parts[0]))
    status: int = lanes.main("test", ())
    return status


def test_the_output_ends_with_what_failed(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(
        lanes,
        monkeypatch,
        program(lanes, "good", ""),
        program(lanes, "bad", "raise SystemExit(3)"),
    )
    assert capsys.readouterr().out.splitlines()[-2:] == ["make test: 1 failed:", "bad"]


def test_that_nothing_was_selected_is_an_error(lanes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    part = lanes.Part("part", ("sh", "-c", "exit 5"))
    assert ended(lanes, monkeypatch, part) == lanes.NOTHING_SELECTED


def test_parts_keep_what_they_compile(lanes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    part = program(lanes, "part", "import sys; sys.exit(sys.dont_write_bytecode)")
    assert ended(lanes, monkeypatch, part) == lanes.NOTHING_SELECTED


def test_a_signal_ends_what_runs_and_nothing_follows(tmp_path: Path) -> None:
    code = (
        "import signal, sys; sys.path.insert(0, sys.argv[1]); import lanes\n"
        "run = lanes.Run(); signal.signal(signal.SIGTERM, run.stop)\n"
        "parts = [lanes.Part(name, ('sleep', '60'), tests=False) for name in 'abcd']\n"
        "run.run_beside([parts[:1], parts[1:3]]); run.run_alone(parts[3]); print(run.stopped_by, sorted(run.failed))\n"
    )
    argv = (sys.executable, "-c", code, str(ROOT / "scripts"))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while len(list(tmp_path.rglob("lane-*/*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.terminate()
        said, _ = process.communicate(timeout=30)
    assert said.splitlines()[-1] == "15 ['a', 'b']"


def test_ci_runs_both_lanes() -> None:
    assert " make test-ci\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
