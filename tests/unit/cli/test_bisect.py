# SPDX-License-Identifier: BSD-3-Clause
"""icbench bisect names the first version that is slower; what is not reported is named, and mistakes are one
sentence.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.cli import bisect
from pytest_icbench.cli.bisect import first_worse
from pytest_icbench.cli.main import main
from pytest_icbench.host.process import run


@given(st.integers(1, 60), st.data())
def test_the_first_slower_version_is_found_in_few_steps(versions: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, versions - 1))
    asked: list[int] = []

    def is_worse(index: int) -> bool:
        asked.append(index)
        return index >= first

    found = first_worse(versions, is_worse)
    assert (found.good, found.bad, found.undecided) == (first - 1, first, ())
    assert len(asked) <= versions.bit_length()
    assert len(set(asked)) == len(asked)


@given(st.integers(1, 30), st.data())
def test_what_cannot_be_reported_is_named_and_never_hides_the_change(versions: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, versions - 1))
    silent = data.draw(st.sets(st.integers(0, max(versions - 2, 0))))
    found = first_worse(versions, lambda index: None if index in silent else index >= first)
    assert found.good < first <= found.bad
    assert set(found.undecided) == set(range(found.good + 1, found.bad))
    assert set(found.undecided) <= silent


def program(path: Path, text: str = "") -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the binaries that were compared with the first one; those from "v4" on are slower, "v2" is undecided."""
    asked: list[str] = []

    def side_by_side(_switch: str, _fast: Path, slow: Path, _scenario: Path, _others: list[str]) -> bool | None:
        asked.append(slow.name)
        return None if slow.name == "v2" else slow.name >= "v4"

    monkeypatch.setattr(bisect, "side_by_side", side_by_side)
    return asked


def test_binaries_between(tmp_path: Path, compared: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(program(tmp_path / f"v{number}")) for number in range(7)]
    listed = tmp_path / "between"
    listed.write_text("\n".join(paths[1:6]) + "\n")
    assert main(["bisect", "ovs", paths[0], paths[6], "--between", str(listed), "-k", "64B"]) == 0
    assert compared[0] == "v6"
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == f"icbench: {paths[4]} is the first that is slower; {paths[3]} is not"


def test_two_binaries_are_confirmed_or_not(
    tmp_path: Path, compared: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, same, slow = (str(program(tmp_path / name)) for name in ("v0", "v1", "v5"))
    assert main(["bisect", "ovs", old, slow]) == 0
    assert main(["bisect", "ovs", old, same]) == 1
    assert f"{same} is not" in capsys.readouterr().out
    assert compared == ["v5", "v1"]


def test_revisions_are_built_and_one_that_cannot_be_is_left_out(
    tmp_path: Path, compared: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run(["git", "init", "-q"], timeout_s=20)
    for number in range(6):
        (tmp_path / "version").write_text(f"v{number}")
        run(["git", "add", "version"], timeout_s=20)
        run(["git", *who, "commit", "-q", "-m", f"v{number}"], timeout_s=20)
        run(["git", "tag", f"v{number}"], timeout_s=20)
    build = program(
        tmp_path / "build",
        'v=$(git show "$1:version"); [ "$v" != v3 ] || exit 7\n'
        'printf "#!/bin/sh\\n" > "bin-$v"; mkdir -p out; cp "bin-$v" "out/$v"\n'
        'chmod +x "out/$v"; echo "built"; echo "out/$v"',
    )
    assert main(["bisect", "ovs", "v0", "v5", "--build", str(build)]) == 0
    out = capsys.readouterr().out.splitlines()
    short = [run(["git", "rev-parse", f"v{number}"], timeout_s=20).stdout.strip() for number in range(6)]
    assert out[-1] == (
        f"icbench: it became slower after {short[1]}, at the latest with {short[4]}; 2 versions in between"
        " could not be decided:"
        f" {short[2]}, {short[3]}"
    )
    assert any("left out" in line and "failed with exit code 7" in line for line in out)


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        (("ovs", "nowhere", "nowhere"), "'nowhere' is not a program: name an executable file"),
        (("ovs", "a", "b", "--build", "nowhere"), "--build: 'nowhere'"),
        (("ovs", "/bin/true", "/bin/true", "--between", "nowhere"), "--between: nowhere cannot be read"),
        (("ovs", "/bin/true", "/bin/true", "--scenario", "nowhere"), "--scenario: there is no nowhere"),
        (("ovs", "a", "b", "--build", "/bin/true"), "run it in the repository, or list the versions with --between"),
    ],
)
def test_mistakes(
    argv: tuple[str, ...],
    reported: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bisect", *argv]) == 2
    assert reported in capsys.readouterr().err


def test_pytest_that_compares_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "test_nothing.py"
    scenario.write_text("def test_nothing():\n    pass\n")
    old = str(program(tmp_path / "v0"))
    assert main(["bisect", "nosuch", old, old, "--scenario", str(scenario)]) == 1
    captured = capsys.readouterr()
    assert "pytest ended with status 4, and compared nothing" in captured.err
