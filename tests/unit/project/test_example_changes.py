# SPDX-License-Identifier: BSD-3-Clause
"""The changes of docs/contributing/ can be made as they stand there, and add what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "contributing"
PAGE = EXAMPLES / "README.md"
#: What a change can touch.
PARTS = ("pytest_icbench", "scenarios", "workload", "pyproject.toml")
#: More, and the layout would not say where such a thing goes. A C file is also named in meson.build.
MOST_FILES = 2
MOST_FILES_C = 3
SCENARIO = "import pytest\n@pytest.mark.icbench\ndef test_a(icbench): pass\n"
_COLLECT = ("-m", "pytest", "-p", "pytest_icbench.plugin.hooks", "-p", "no:cacheprovider", "--collect-only", "-q")

#: Programs ask the copy of the package, with what this checkout's tests have.
_BEGIN = f"import sys\nsys.path.append({str(ROOT)!r})\n"

#: Asks the call of ``call.diff`` on one host, by a rig, over a connection, and over two hosts.
CALL = """
import os
from tests.unit.testbed.in_process import host_rig, rigs
from pytest_icbench.model.case import Case
from pytest_icbench.model.rig import Memory
from pytest_icbench.testbed.case_rig import Rig

own, parent = os.getpid(), os.getppid()
near, remote, both = rigs({0: own}, {1: parent})
rig = Rig(Case("veth"), None, None, "netns")
rig._part = near
two = Rig(Case("veth", remote=True), None, None, "netns")
two._part = both
all_four = (near, "l1", {0}), (rig, "l1", {0}), (remote, "l1", {1}), (two, "l1+l1", {0, 1})
for asked, launch, indexes in all_four:
    memory = asked.memory(launch)
    assert type(memory) is Memory, memory
    assert set(memory.resident_kib) == indexes, memory
    assert all(kib > 100 for kib in memory.resident_kib.values()), memory
print("four answers")
"""

#: Judges a loss below the allowance, without and with the verdict of ``verdict.diff`` among those that fail.
VERDICT = """
from dataclasses import replace
from tests.baselines import measured
from pytest_icbench.errors import Regression
from pytest_icbench.gate.baseline_comparison import BaselineComparison
from pytest_icbench.gate.judge import Policy, enforce, judge
from pytest_icbench.model.finding import Finding
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict, parse_verdicts
from pytest_icbench.plugin.outcomes import classify_outcome
from pytest_icbench.stats.verdict_rule import Allowance, decide_pairs

def verdict(loss, share):
    ratios = [1 - loss + step / 2000 for step in range(10)]
    return Verdict.of_outcome(decide_pairs(ratios, Allowance("higher", share), 1).outcome)

assert (verdict(0.002, 0.1), verdict(0.1, 0.03), verdict(0.3, 0.1)) == ("PASS", "REGRESSED", "REGRESSED")
decided = verdict(0.1, 0.2)
found = Finding("throughput_pps", "drop", 0.2, "a key", decided, value=4.5e6, baseline="b", ratio=0.9, unit="pair")
against = BaselineComparison("b", (found,), found)
passed = enforce(judge(measured(), against=against))
stored = replace(measured(), **passed.fields())
assert Measurement.from_json(stored.to_json()) == stored
failing = parse_verdicts(passed.verdict.lower(), "--icbench-fail-on")
try:
    enforce(judge(measured(), against=against, policy=Policy(failing=failing)))
except Regression as error:
    print(classify_outcome("passed", None, [stored]), classify_outcome("failed", error, [stored]), error)
"""

#: Measures a case whose launches differ too much.
STOPPING = """
from itertools import count
from tests.unit.scripted_rig import ScriptedRig, run
from pytest_icbench.measure import stopping

stopping.MOST_LAUNCHES = 8
windows = count()
rig = ScriptedRig(path=lambda sent: sent * (next(windows) // 3 % 5 + 5) // 10)
measured = run(rig, repeats=None, max_duration_s=2)
print(measured.launches, measured.ended_by)
"""

#: Takes the mix of ``traffic.diff`` from the command line to a measurement, and back from its file and its id.
TRAFFIC = """
from pathlib import Path
from tests.unit.scripted_rig import ScriptedRig, run
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import read
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.measure.launch.commands import commands
from pytest_icbench.model.case import Case
from pytest_icbench.model.case import CASE_ID
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic

def typed(row):
    return ("--icbench-mix", "voip") if row.name == "mix" else None

here = Path.cwd()
options = read(typed, root=here, directory=here)
without = read(lambda row: None, root=here, directory=here)
marker = {"switch": "veth"}
(case,) = expand(parse_marker((), marker, "a"), options, builtin_switches(), "a")
(marked,) = expand(parse_marker((), {**marker, "mix": "voip"}, "a"), without, builtin_switches(), "a")
assert marked == case
rig = ScriptedRig()
argv = commands(rig, case, Settings())[0].argv(Path("w"))
measured = run(rig, case=case)
assert Case.from_dict(Measurement.from_json(measured.to_json()).axes) == case
label = CASE_ID.search(f"test_x.py::test_a[{case.id}]")["traffic"]
assert Traffic.from_label(label) == case.traffic
gbps, pps = measured.throughput_gbps.value, measured.throughput_pps
print(case.id, argv[argv.index("--sizes") + 1], round(gbps * 1e9 / 8 / getattr(pps, "value", pps)))
"""

#: Finds what makes a function behind a switch's ports, and the cycles that it has to cost.
FUNCTION = """
from pytest_icbench.driver.function.registry import component_for
cls = component_for("slow", "linux-bridge", "veth")
print(cls.name, cls.least_cycles("slow"))
"""

#: Parses a command line with the back ends of the copy, whose files without DPDK and AF_XDP are built.
BACKEND = r"""
import re, subprocess
from pathlib import Path
import pytest_icbench

main = '''
#include "option/options.h"
static const struct application SEND = {.name = "send", .sends = true};
static const struct application *const APPS[] = {&SEND, NULL};
int main(int argc, char **argv)
{
	struct options o;
	char err[256] = "";

	if (options_parse(&o, APPS, argc, argv, err, sizeof(err)) == OPTIONS_RUN)
		printf("%s has %s, ", o.backend->name, o.backend->ops->name);
	else
		printf("%s, ", err);
	return 0;
}
'''
workload = Path(pytest_icbench.__file__).parents[1] / "workload"
listed = re.search(r"^workload_sources = files\((.*?)^\)", (workload / "meson.build").read_text(), re.M | re.S)[1]
files = [workload / name for name in re.findall(r"'(src/(?:base|io|option|request)/\w+\.c)'", listed)]
Path("main.c").write_text(main)
flags = ["-std=gnu11", "-D_GNU_SOURCE", f"-I{workload / 'src'}", "-o", "parse"]
subprocess.run(["cc", *flags, "main.c", *files, "-lm", "-pthread"], check=True)
ends = ["10.0.0.1", "02:00:00:00:00:01", "10.0.0.2", "02:00:00:00:00:02"]
for words in (["--io", "udp-busy"], ["--io", "udp-busy", "--blocking"]):
    print(subprocess.run(["./parse", "send", *ends, *words], check=True, capture_output=True, text=True).stdout, end="")
"""

#: Python's arguments in a directory with a scenario, and what is in the output with the change alone.
CHECKS: dict[str, tuple[Sequence[str], str]] = {
    "switch": ((*_COLLECT, "--icbench-switch=kernel"), "test_x.py::test_a[linux-hub-64B-b32-1vs1-Rmax]"),
    "call": (("-c", _BEGIN + CALL), "four answers"),
    "option": (("-m", "pytest", "-p", "pytest_icbench.plugin.hooks", "--help"), "--icbench-note=TEXT"),
    "column": (
        (
            "-c",
            "from pytest_icbench.report.columns import In, columns; print([c.name for c in columns(In.THROUGHPUT)])",
        ),
        "'vector'",
    ),
    "verdict": (("-c", _BEGIN + VERDICT), "passed regressed SLIPPED: ovs-64B-b32-1vs1-Rmax: 10 % lower"),
    "stopping": (("-c", _BEGIN + STOPPING), "8 max-launches"),
    "traffic": (("-c", _BEGIN + TRAFFIC), "veth-voip-b32-1vs1-Rmax 218 218"),
    "function": (("-c", _BEGIN + FUNCTION), "slow 2000"),
    "backend": (("-c", BACKEND), "polls within blocking calls: add --blocking, udp-busy has udp-busy, "),
    "node": (("-c", "from pytest_icbench.driver.node.registry import NODE_KINDS; print(NODE_KINDS)"), "'nice'"),
}


def sections() -> dict[str, str]:
    """The page's sections by the change that each links to."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {name: part for part in parts for name in re.findall(r"\[(\w+)\.diff\]\(\1\.diff\)", part)}


def touched(diff: Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.+)$", diff.read_text(encoding="utf-8"), flags=re.M)


def output(package: Path, directory: Path, arguments: Sequence[str]) -> str:
    """What Python writes with the package of this checkout or copy."""
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    argv = [sys.executable, "-P", *arguments]
    done = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_every_change_has_a_section_and_a_check() -> None:
    names = {diff.stem for diff in EXAMPLES.glob("*.diff")}
    assert names == set(CHECKS) == set(sections())


@pytest.mark.parametrize("name", CHECKS)
def test_the_page_names_the_files_to_open(name: str) -> None:
    section, files = sections()[name], touched(EXAMPLES / f"{name}.diff")
    most = MOST_FILES_C if any(path.endswith(".c") for path in files) else MOST_FILES
    assert 1 <= len(files) <= most
    assert [path for path in files if f"`{path}`" not in section] == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a change can touch, for all changes in turn."""
    directory = tmp_path_factory.mktemp("copy")
    for part in PARTS:
        source, target = ROOT / part, directory / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return directory


@contextmanager
def applied(diff: Path, copy: Path) -> Iterator[None]:
    """Makes a change in a copy, and takes it back."""
    subprocess.run(["git", "apply", diff], cwd=copy, check=True, timeout=20)
    try:
        yield
    finally:
        subprocess.run(["git", "apply", "-R", diff], cwd=copy, check=True, timeout=20)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is missing: apt install git")
@pytest.mark.parametrize("name", CHECKS)
def test_a_change_can_be_made_and_does_what_it_says(name: str, copy: Path, tmp_path: Path) -> None:
    if name == "backend" and shutil.which("cc") is None:
        pytest.skip("no C compiler: apt install gcc")
    (tmp_path / "test_x.py").write_text(SCENARIO)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    diff = EXAMPLES / f"{name}.diff"
    arguments, expected = CHECKS[name]
    assert expected not in output(copy, tmp_path, arguments)
    with applied(diff, copy):
        assert all((copy / path).exists() for path in touched(diff))
        said = output(copy, tmp_path, arguments)
    assert expected in said, said
