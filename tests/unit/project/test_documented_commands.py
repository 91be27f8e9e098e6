# SPDX-License-Identifier: BSD-3-Clause
"""Every command that a document shows is planned, run or parsed, from the installed package; no other place lists them.

Commands stand in code blocks without a language, and in sentences. Those of pytest are planned in a directory that has
what their document says: its scenarios, and those that `icbench scenarios` writes. In a block each has its time after
it (`# 2 minutes`), unless two seconds are enough; the plan of this host takes no longer.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_icbench.cli.main import main, parser
from tests import outside_switch

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "scenarios/README.md", "benchmarks/README.md")]
DOCUMENTS += sorted(ROOT.glob("docs/**/*.md"))
STORED_RUN = ROOT / "tests" / "unit" / "store" / "stored_run"

#: Plans each command that it reads in a fork, since loading pytest and the plugin takes longer than a plan.
PLANNER = """
import contextlib, importlib, json, os, pkgutil, sys
import pytest, xdist.plugin
import pytest_icbench
from pytest_icbench.cli.main import main
for module in pkgutil.walk_packages(pytest_icbench.__path__, "pytest_icbench."):
    if not module.name.startswith(("pytest_icbench.conformance", "pytest_icbench.scenarios", "pytest_icbench.cli")):
        with contextlib.suppress(ImportError):
            importlib.import_module(module.name)
for line in sys.stdin:
    directory, output, program, words = json.loads(line)
    child = os.fork()
    if not child:
        status = 70
        try:
            os.chdir(directory)
            sys.path.insert(0, directory)
            for descriptor, file in enumerate((os.devnull, output, output)):
                os.dup2(os.open(file, os.O_RDWR | os.O_APPEND), descriptor)
            status = (main if program == "icbench" else pytest.main)(words)
        except SystemExit as end:
            status = end.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(status or 0))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
#: The plugins whose options the commands have. To look for all others takes as long as a plan does.
PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_icbench.plugin.hooks,xdist.plugin"}

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", flags=re.M | re.S)
_INLINE = re.compile(r"(?<!`)`((?:pytest|icbench|make|pip|python3?|apt|ssh|for|setsid|\.venv/\S+) [^`\n]+)`")

#: Commands that are neither run nor planned, by their beginning, and why.
NOT_RUN = {
    "apt install": "installs packages of the system",
    ". .venv/bin/activate": "changes the shell that reads it",
    "for n in": "a loop of the shell over hosts that are not here",
    "setsid --wait": "changes the priority of the session of a shell",
    "python3 -m venv": "makes an environment on another host",
    "icbench-workload": "the grammar of a command line; tests/unit/driver/workload compares its options with the page",
    "python benchmarks/": "takes minutes of a quiet machine",
    "python scripts/shots.py": "photographs pages in Chromium for a minute",
    "crictl": "asks a node of Kubernetes, which is not here",
    "pytest --pyargs pytest_icbench.conformance --icbench-switch linux-hub": "measures what an example change adds",
    "options ─►": "a drawing",
    "─► Launch": "a drawing",
}
#: The time of a command.
_TIME = re.compile(r" # (\d+) (s|minutes?|hours?)(?:[;,] .*)?$")
_UNITS = {"s": 1, "m": 60, "h": 3600}
#: Commands that end within two seconds.
_QUICK = re.compile(r"icbench (accept|baseline|compare|scenarios|topology|waive)\b|.*--icbench-plan")

#: Subcommands that the tests of a host run; here their arguments are parsed.
PARSED = {"doctor", "recover", "history", "hlog", "bisect"}


def relative(document: Path) -> str:
    return str(document.relative_to(ROOT))


def blocks(document: Path, language: str) -> list[str]:
    return [block for found, block in _FENCE.findall(document.read_text(encoding="utf-8")) if found == language]


def lines(document: Path) -> list[str]:
    """The lines of the document's blocks of commands, continued ones joined, in their order."""
    found = (line for block in blocks(document, "") for line in block.replace("\\\n", " ").splitlines())
    return [" ".join(line.split()) for line in found if line.strip()]


def shown(document: Path) -> dict[str, float | None]:
    """The commands of the document's blocks in their order, with the seconds that stand after each."""
    times: dict[str, float | None] = {}
    for line in lines(document):
        stated = _TIME.search(line)
        times[line.partition(" # ")[0].removeprefix(".venv/bin/")] = (
            int(stated[1]) * _UNITS[stated[2][0]] if stated else None
        )
    return times


def mentioned(document: Path) -> list[str]:
    """The commands in the document's sentences and tables."""
    return _INLINE.findall(_FENCE.sub("", document.read_text(encoding="utf-8")))


def of(program: str) -> Iterator[tuple[str, str]]:
    """Every shown or mentioned command of a program, with its document."""
    for document in DOCUMENTS:
        for command in dict.fromkeys([*shown(document), *mentioned(document)]):
            if re.match(rf"(\.venv/bin/)?{program}( |$)", command):
                yield relative(document), command


def excused(command: str) -> str | None:
    return next((beginning for beginning in NOT_RUN if command.startswith(beginning)), None)


def test_every_command_is_of_a_known_program_or_excused() -> None:
    known = re.compile(r"(\.venv/bin/)?(pytest|icbench|make|pip|python scripts/docs_pictures\.py)( |$)")
    commands = [command for document in DOCUMENTS for command in [*shown(document), *mentioned(document)]]
    assert len(commands) > 80
    assert [command for command in commands if not known.match(command) and not excused(command)] == []
    assert {excused(command) for command in commands} - {None} == set(NOT_RUN), "an excuse that nothing needs"


def test_a_command_that_takes_longer_than_two_seconds_has_its_time() -> None:
    timeless = [
        f"{relative(document)}: {command}"
        for document in DOCUMENTS
        for command, seconds in shown(document).items()
        if seconds is None and not excused(command) and not _QUICK.match(command)
    ]
    assert timeless == []


def test_make_targets_exist() -> None:
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    variables = set(re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), flags=re.M))
    for document, command in of("make"):
        for word in shlex.split(command)[1:]:
            name, equals, _ = word.partition("=")
            assert name in (variables if equals else rules), f"{document}: {command}"


def test_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = [(document, extra) for document, command in of("pip") for extra in re.findall(r"\[([\w,]+)\]", command)]
    assert len(found) > 4
    assert [(document, names) for document, names in found if not set(names.split(",")) <= set(extras)] == []


@pytest.mark.parametrize(("document", "command"), list(of("icbench")))
def test_arguments_of_icbench_are_accepted(document: str, command: str) -> None:
    """A command in a sentence can be a name alone, and end in a list of what it takes."""
    words = shlex.split(re.split(r" > | \[", command.replace("…", ""))[0])[1:]
    if len(words) == 1 and words[0] in ("accept", "waive", "compare", "report", "history", "topology", "scenarios"):
        words.append("--help")
    if words[0] == "demo":  # the rest is pytest's
        words = ["demo"]
    if words[-1] in ("--help", "--version"):
        with pytest.raises(SystemExit, match=r"^0$"):
            parser().parse_args(words)
    else:
        assert parser().parse_args(words).command


class Workspace:
    """A directory as a reader of a document has it, in which the commands run."""

    def __init__(self, document: Path, directory: Path, scenarios: Path) -> None:
        self.directory = directory
        shutil.copytree(scenarios, directory / "scenarios")
        (directory / "reports").mkdir()
        shutil.copytree(STORED_RUN, directory / "reports" / "latest")
        (directory / "base").mkdir()
        for program in ("ovs-vswitchd", "base/ovs-vswitchd"):
            (directory / program).symlink_to("/bin/true")
        (directory / "pytest.ini").write_text("[pytest]\n")
        self._write_programs(document)
        self._write_python(document)

    def _write_programs(self, document: Path) -> None:
        """Writes the document's shell scripts and TOML files."""
        for block in blocks(document, "bash"):
            for name in re.findall(r"`(\S+\.sh)`", document.read_text()):
                (self.directory / name).write_text(block)
                (self.directory / name).chmod(0o755)
        for block in blocks(document, "toml"):
            if name := re.match(r"# (\S+\.toml)\n", block):
                (self.directory / name[1]).write_text(block)

    def _write_python(self, document: Path) -> None:
        """Writes the document's scenarios, nodes and switches."""
        python = "\n".join(block for block in blocks(document, "python") if "icbench" in block)
        for name in set(re.findall(r"\btest_mine\.py|\btest_upgrade\.py", document.read_text())):
            (self.directory / name).write_text(f"import pytest\n{python}")
        if "pytest_icbench_nodes" in python:
            (self.directory / "conftest.py").write_text(python)
        if document == outside_switch.PAGE:
            module = f"{outside_switch.MODULE}.py"
            (self.directory / module).write_text(outside_switch.files()[module])

    def arguments(self, command: str) -> list[str]:
        """Returns the arguments of pytest, with paths and hosts of this test in the place of the reader's."""
        ten = " ".join(f"--tx ssh=root@a{number}//python=p//chdir=/c" for number in range(1, 11))
        command = command.replace("$PWD/", f"{self.directory}/").replace("$tx", ten)
        command = re.sub(r"/opt/ovs\S*/ovs-vswitchd", str(self.directory / "ovs-vswitchd"), command)
        words = shlex.split(command)[1:]
        if (self.directory / f"{outside_switch.MODULE}.py").exists():
            words += ["-p", outside_switch.MODULE]
        return words

    def plan(self, command: str, planner: subprocess.Popen[str]) -> tuple[int, str]:
        """Plans a command. Returns the exit status and the output."""
        words = self.arguments(command)
        asked = [] if {"--icbench-plan", "--collect-only"} & set(words) else ["--icbench-plan"]
        program = command.split()[0]
        output = self.directory.with_name(f"{self.directory.name}.output")
        output.write_text("")
        cache = ["-p", "no:cacheprovider"] if program == "pytest" else []
        assert planner.stdin is not None
        assert planner.stdout is not None
        print(json.dumps([str(self.directory), str(output), program, [*cache, *words, *asked]]), file=planner.stdin)
        planner.stdin.flush()
        return int(planner.stdout.readline()), output.read_text()


@pytest.fixture(scope="module")
def planner() -> Iterator[subprocess.Popen[str]]:
    """The process that plans commands."""
    argv = [sys.executable, "-P", "-c", PLANNER]
    environment = {**os.environ, **PLUGINS, "PYTHONPATH": ""}  # the installed package
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("packaged") / "scenarios"
    assert main(["scenarios", str(directory)]) == 0
    return directory


def planned(document: Path) -> dict[str, float | None]:
    """The commands of blocks, then those of pytest in sentences."""
    mentions = [command for command in mentioned(document) if command.startswith("pytest ") and not excused(command)]
    return shown(document) | {command: None for command in mentions if command not in shown(document)}


def with_commands() -> list[Path]:
    return [document for document in DOCUMENTS if any(map(re.compile("pytest|icbench demo").match, planned(document)))]


def seconds_of(clock: str) -> float:
    """The seconds of a time as a plan has it, `1:02:03`."""
    return float(sum(int(part) * 60**place for place, part in enumerate(reversed(clock.split(":")))))


#: Where a plan has its time: the budget, that of each of several hosts, or the least.
_PLANNED = (r"^budget ([\d:]+\d)", r"over \d+ hosts like this one at least ([\d:]+)", r"at least ([\d:]+) \(h")


def takes(said: str) -> float:
    """The seconds that a plan says."""
    found = [match for pattern in _PLANNED if (match := re.search(pattern, said, flags=re.M))]
    # The plan takes a test of the conformance suite for one that measures.
    return seconds_of(found[0][1]) if found and "test_conformance.py" not in said else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("document", with_commands(), ids=relative)
def test_blocks_of_commands_run_or_are_planned(
    document: Path,
    tmp_path: Path,
    scenarios: Path,
    planner: subprocess.Popen[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace = Workspace(document, tmp_path, scenarios)
    monkeypatch.chdir(tmp_path)
    assert main(["accept", "main", "--all"]) == 0
    for command, stated_s in planned(document).items():
        if command.startswith("icbench ") and command.split()[1] not in {*PARSED, "demo"}:
            run_icbench(command, tmp_path, capsys)
        elif command.startswith(("pytest ", "icbench demo")):
            status, said = workspace.plan(command, planner)
            assert status == 0, f"{command}\n{said[-3000:]}"
            assert re.search(r"cases?, at least|tests? collected|\d+ tests|^icbench, ", said, re.M), said[-1500:]
            assert stated_s is None or takes(said) <= stated_s, f"{command}\n{said[-1500:]}"


def run_icbench(command: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, _, target = command.partition(" > ")
    arguments = shlex.split(words)[1:]
    if arguments[0] == "scenarios":
        arguments.append("--force")
    if arguments[0] == "accept":  # the run that is stored has other cases
        arguments = ["linux-bridge-*" if word.endswith("-*") else word for word in arguments]
    capsys.readouterr()
    assert main(arguments) == 0, f"{command}\n{capsys.readouterr().err}"
    if target:
        (directory / target).write_text(capsys.readouterr().out)
