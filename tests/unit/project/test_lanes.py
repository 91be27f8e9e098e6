# SPDX-License-Identifier: BSD-3-Clause
"""The two lanes have every test once, the third has both; packets over every switch; time told beforehand."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.model.existing import ATTACH

ROOT = Path(__file__).parents[3]
#: These run in a guest of their own.
APART = ROOT / "tests" / "sriov"
LANES = ("test", "test-all", "test-ci")


@pytest.fixture
def lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lanes", ROOT / "scripts" / "lanes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lanes", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TIMES", tmp_path / "times.json")
    monkeypatch.setattr(module, "CACHE", tmp_path / "lanes")
    return module


def collected(expression: str, *paths: str) -> list[str]:
    """The ids of the tests that pytest selects, as a lane does."""
    argv = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", expression, *paths)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


def takes(command: Sequence[str], file: Path) -> bool:
    """A part's command has this file among its paths, and does not leave it out."""
    path = str(file.relative_to(ROOT))
    below = [argument for argument in command if path == argument or path.startswith(f"{argument}/")]
    return bool(below) and f"--ignore={path}" not in command


def test_a_test_is_in_one_lane_by_its_marker(lanes: ModuleType) -> None:
    assert {"test": f"not {lanes.MARKERS['test-all']}", "test-all": "slow", "test-ci": ""} == lanes.MARKERS


@pytest.mark.parametrize("name", LANES)
def test_one_part_of_a_lane_takes_each_file(lanes: ModuleType, name: str) -> None:
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if not file.is_relative_to(APART)]
    parts = lanes.lane(name, ()).parts
    assert [file for file in files if [takes(part.command, file) for part in parts].count(True) != 1] == []
    assert all(lanes.MARKERS[name] in part.command for part in parts if part.selects)


@pytest.mark.parametrize("name", LANES)
def test_what_waits_takes_no_core(lanes: ModuleType, name: str) -> None:
    """The first to begin; its files are there, and a lane takes as long as the longest of what runs side by side."""
    here, apart, *others = lanes.lane(name, ()).beside
    assert here.waits
    assert apart.waits
    assert not any(part.waits for part in others)
    assert [path for path in (*lanes.CALM, *lanes.CALM_APART, lanes.OWN_HOST) if not (ROOT / path).is_file()] == []
    assert [part.name for part in (here, apart, *others) if lanes.OWN_HOST in part.command] == [apart.name]
    parts = [lanes.Part(name, 10, ()) for name in "ab"]
    for waits, whole in ((5, 17), (30, 37)):
        assert lanes.Lane((lanes.Part("w", waits, (), waits=True), *parts), lanes.Part("c", 7, ())).seconds({}) == whole


def test_packets_pass_every_switch_in_the_first_lane(lanes: ModuleType) -> None:
    files = ("tests/host/test_switches.py", "tests/host/test_switch_counters.py")
    kept = ("test_jumbo_frames[", "test_counters_agree_with_the_endpoints[")
    quick = [test for test in collected(lanes.MARKERS["test"], *files) if any(name in test for name in kept)]
    assert {f"{files[0]}::test_jumbo_frames[{name}]" for name in builtin_switches() if name != ATTACH} <= set(quick)
    assert any(test.startswith(files[1]) for test in quick)
    there = collected(lanes.MARKERS["test"], "tests/host/test_attach.py")
    assert any("::test_containers_are_as_before[" in test for test in there)
    slow = [test for test in collected(lanes.MARKERS["test-all"], *files) if any(name in test for name in kept)]
    assert slow == []


def test_the_time_is_told_from_last_time(lanes: ModuleType) -> None:
    chosen = lanes.lane("test", ())
    first, *_ = chosen.parts
    assert "on two CPUs with nothing else to do" in lanes.forecast("test", chosen, lanes.read_times("test"), ())
    assert chosen.seconds({}) <= 360
    lanes.write_times("test", {part.name: 10.0 for part in chosen.parts})
    lanes.write_times("test-all", {first.name: 1.0})
    lanes.write_times("test", {first.name: 200.04})
    times = lanes.read_times("test")
    assert (times[first.name], times["lint"]) == (200.0, 10.0)
    told = lanes.forecast("test", chosen, times, ())
    assert told.startswith("make test: about 3.5 min, as last time here")
    assert f"{first.name} 3.3 min" in told
    assert "-k foo" in lanes.forecast("test", chosen, times, ("-k", "foo"))


@pytest.mark.parametrize("text", ["", "[]", '{"test": 1}', '{"test": {"lint": "x"}}'])
def test_a_file_of_times_that_is_none_is_nothing_known(lanes: ModuleType, text: str) -> None:
    lanes.TIMES.write_text(text)
    assert lanes.read_times("test") == {}
    lanes.write_times("test", {"lint": 5.0})
    assert lanes.read_times("test") == {"lint": 5.0}


def test_both_lanes_have_25_minutes_together_and_ci_too(lanes: ModuleType) -> None:
    first, second, both = (lanes.lane(name, ()).seconds({}) for name in LANES)
    assert both < first + second <= 25 * 60


def test_both_at_once_have_the_parts_of_either(lanes: ModuleType) -> None:
    """But for the marker, and for how much is told."""

    def asked(name: str) -> dict[str, list[str]]:
        leaves = (*lanes.MARKERS.values(), "-v", "--durations=20")
        return {part.name: [word for word in part.command if word not in leaves] for part in lanes.lane(name, ()).parts}

    assert asked("test-ci") == {**asked("test"), **asked("test-all")}


def test_how_far_a_part_is(lanes: ModuleType) -> None:
    assert lanes.how_far("tests/a.py ... [  9%]\ntests/b.py ... [ 37%]\ntests/c") == "37%"
    assert lanes.how_far(".venv/bin/mypy\n\n") == ".venv/bin/mypy"
    assert lanes.how_far("") == "started"


def run(
    lanes: ModuleType, codes: Sequence[str], capsys: pytest.CaptureFixture[str], waits: str | None = None
) -> tuple[str, Any]:
    """What is written when these programs of Python run side by side, and beyond the cores one that ``waits``."""
    work = lanes.Run()
    parts = [lanes.Part(f"part {at}", 1, (sys.executable, "-c", code)) for at, code in enumerate(codes)]
    beyond = [] if waits is None else [lanes.Part("beyond", 1, (sys.executable, "-c", waits), waits=True)]
    work.side_by_side([*beyond, *parts])
    return capsys.readouterr().out, work


def test_progress_is_told_while_parts_run_side_by_side(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(lanes, "EVERY_S", 0.2)
    flag = tmp_path / "flag"
    waits = f"import os, time; print('[ 50%]', flush=True)\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.1)"
    ends = f"import time; time.sleep(1); open({str(flag)!r}, 'w'); print('second')"
    said, work = run(lanes, [waits, "print('first')", ends], capsys)
    assert "part 0: 50%" in said
    assert said.index("\nfirst") < said.index("\nsecond")
    assert (work.failed, work.any_selected, set(work.times)) == ([], True, {"part 0", "part 1", "part 2"})


def test_as_many_parts_as_cores_run_beside_one_that_waits(
    lanes: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each says that it is there, then waits for all that have to run at the same time."""
    code = (
        "import pathlib, sys, time; top = pathlib.Path({top!r}); (top / {own!r}).touch(); end = time.monotonic() + 20\n"
        "while {others!r} - {{path.name for path in top.iterdir()}}:\n"
        " time.sleep(0.02)\n"
        " time.monotonic() < end or sys.exit(1)"
    )
    plan = {"waits": {"a", "b", "c"}, "a": {"waits", "b"}, "b": {"waits", "a"}, "c": {"a"}}
    waits, *parts = (code.format(top=str(tmp_path), own=own, others=others) for own, others in plan.items())
    _, work = run(lanes, parts, capsys, waits)
    assert work.failed == []
    assert len(work.times) == len(plan)


def test_what_waits_comes_first(lanes: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import os, time; time.sleep(0.3); print('{name}', os.getpriority(os.PRIO_PROCESS, 0))"
    said, _ = run(lanes, [code.format(name="computes")], capsys, code.format(name="waits"))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert f"\nwaits {own}\n" in said
    assert f"\ncomputes {min(19, own + lanes.NICER)}\n" in said


def test_what_fails_is_named_and_the_rest_runs(lanes: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    said, work = run(lanes, ["raise SystemExit(3)", "raise SystemExit(5)", "print('next')"], capsys)
    assert "\nnext" in said
    assert work.failed == ["part 0"]


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


@pytest.mark.parametrize(
    ("wrong", "failed", "unsteady"), [(0, [], ["test_x.py::test_unsteady"]), (1, ["part"], []), (3, ["part"], [])]
)
def test_what_failed_runs_once_more_by_itself(
    lanes: ModuleType, tmp_path: Path, wrong: int, failed: list[str], unsteady: list[str]
) -> None:
    """Alone, without what passed, unless it is too much for chance."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_x.py").write_text(TESTS.format(wrong=wrong))
    command = (sys.executable, "-m", "pytest", f"--rootdir={tmp_path}", "-c", f"{tmp_path}/pytest.ini")
    work = lanes.Run()
    part = lanes.Part("part", 1, (*command, str(tmp_path / "test_x.py")))
    work.side_by_side([part])
    assert len(part.suspects) == 1 + wrong
    work.again()
    assert (work.failed, work.unsteady) == (failed, unsteady)
    if wrong <= 1:
        assert len(part.suspects) == wrong


def test_parts_keep_what_they_compile(
    lanes: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    _, work = run(lanes, ["import sys; sys.exit(sys.dont_write_bytecode)"], capsys)
    assert work.failed == []


def test_that_nothing_was_selected_anywhere_is_known(lanes: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    _, work = run(lanes, ["raise SystemExit(5)"], capsys)
    assert (work.failed, work.any_selected) == ([], False)


def test_a_signal_ends_what_runs_and_nothing_follows(tmp_path: Path) -> None:
    code = (
        "import signal, sys; sys.path.insert(0, sys.argv[1]); import lanes\n"
        "work = lanes.Run(); signal.signal(signal.SIGTERM, work.stop)\n"
        "parts = [lanes.Part(name, 1, ('sleep', '60')) for name in 'abcd']\n"
        "work.side_by_side(parts[:3]); work.alone(parts[3]); print(work.stopped_by, sorted(work.failed))\n"
    )
    argv = (sys.executable, "-c", code, str(ROOT / "scripts"))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while len(list(tmp_path.rglob("*.log"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.terminate()
        said, _ = process.communicate(timeout=30)
    assert said.splitlines()[-1] == "15 ['a', 'b']"


def test_ci_runs_both_lanes() -> None:
    assert " make test-ci\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
