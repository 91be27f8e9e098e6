# SPDX-License-Identifier: BSD-3-Clause
"""--icbench-topology: a mistake in the file ends pytest before anything is run; a plan says what it does not serve."""

from __future__ import annotations

from tests.plugin.conftest import Runner

SCENARIO = """
@pytest.mark.icbench(switch="veth", pairs=[1, 2])
def test_rate(icbench):
    icbench.gate(icbench.throughput())
"""
PAIR = """
[[container]]
name = "a"
application = "send"
peer = "b"

[[container]]
name = "b"
application = "recv"
peer = "a"
"""


def test_a_mistake_ends_pytest_before_anything_is_run(inner: Runner) -> None:
    inner.write(test_x=SCENARIO)
    (inner.path / "lab.toml").write_text(PAIR.replace('peer = "b"', 'peer = "c"'))
    result = inner.run("--icbench-topology=lab.toml")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *lab.toml: container[[]0].peer: there is no container 'c'; *"])
    assert not (inner.path / "reports").exists()
    assert inner.run("--icbench-topology=lost.toml").ret == 4


def test_dedicated_placement_is_held_against_the_file(inner: Runner) -> None:
    inner.write(test_x=SCENARIO)
    (inner.path / "lab.toml").write_text(PAIR.replace("peer =", "cpus = 0\npeer ="))
    result = inner.run("--icbench-topology=lab.toml", "--icbench-placement=dedicated")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *lab.toml: container[[]1].cpus: CPU 0 is a's (container[[]0]), and with *"])


def test_the_plan_says_what_it_does_not_serve(inner: Runner) -> None:
    inner.write(test_x=SCENARIO)
    inner.ini("icbench_topology = lab.toml")
    (inner.path / "lab.toml").write_text(PAIR)
    result = inner.run("--icbench-plan", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*skip *2vs2*: the topology has 1 pair, not 2: lower --icbench-pairs*"])
