# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of the version that a baseline is of: the same, startable, or gone; each in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.gate.entry import make_entry
from pytest_icbench.host.host_facts import sha256
from pytest_icbench.model.candidate import OldVersion, Program, Replaced
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin.old_versions import explain_upgrades, find_old_version
from pytest_icbench.store.baselines import format_baseline, parse_baseline
from pytest_icbench.testbed.candidate_catalogue import _of_old
from tests.measurements import measurement


@pytest.fixture
def program(tmp_path: Path) -> Program:
    path = tmp_path / "ovs-3.1"
    path.write_text("#!/bin/sh\n")
    return Program(str(path), sha256(path), None, "openvswitch-switch 3.1.0-2", "3.1.0")


def version(program: Program, **changed: object) -> OldVersion:
    plain = OldVersion(program, Program("/opt/w", "1f"), config={"sha256": "2e", "values": {"a": 1}}, kernel="6.1")
    return replace(plain, **changed)  # type: ignore[arg-type]


NOW = Program("/usr/sbin/ovs-vswitchd", "9c", None, "openvswitch-switch 3.3.0-1", "3.3.0")


def test_what_still_exists_is_a_candidate(program: Program) -> None:
    old = version(program)
    found = find_old_version(old, version(NOW), "ovs")
    assert found.candidate is not None
    assert (found.candidate.key, found.candidate.kind, found.candidate.old) == ("ovs:before", "old", old)
    assert found.sentence == "measured side by side with the baseline's version, which differs in ovs"
    assert _of_old(old, "ovs") == Replaced(
        programs={"ovs": Path(str(program.path))}, configs={"ovs": {"a": 1}, "function:": {}}
    )


def test_another_configuration_alone_is_a_candidate(program: Program) -> None:
    found = find_old_version(version(program), version(program, config={}), "ovs")
    assert found.candidate is not None
    assert found.sentence == "measured side by side with the baseline's version, which differs in configuration"


def test_the_same_software_is_no_candidate(program: Program) -> None:
    found = find_old_version(version(program), version(program), "ovs")
    assert found.candidate is None
    assert found.sentence == "the switch, the workload and their configurations are those of the baseline"
    assert not version(program).same(version(program)), "a script can start another program than then"
    linked = version(replace(program, libraries="3c"))
    assert linked.same(linked)


@pytest.mark.parametrize(
    ("old", "sentence"),
    [
        (
            {"switch": Program("/nix/ovs", "1f", None, "openvswitch-switch 3.1.0-2", "3.1.0")},
            "the baseline's ovs cannot be started any more: /nix/ovs (openvswitch-switch 3.1.0-2) is gone",
        ),
        ({"kernel": "5.10"}, "the baseline is of kernel 5.10, which cannot run next to 6.1"),
        (
            {"function": Program(version="Suricata 6"), "component": "suricata"},
            "the baseline's suricata cannot be started any more: its path is not known (Suricata 6)",
        ),
        (
            {"component": "vpp"},
            "the functions were made by vpp, and are made by suricata",
        ),
    ],
)
def test_what_is_gone_is_one_sentence(program: Program, old: dict[str, object], sentence: str) -> None:
    now = version(program, function=Program(version="Suricata 7"), component="suricata")
    found = find_old_version(replace(now, **old), now, "ovs")  # type: ignore[arg-type]
    assert (found.candidate, found.sentence) == (None, sentence)
    assert len(sentence.split()) <= 25


def test_a_file_that_was_replaced_is_another_one(program: Program) -> None:
    old = version(program)
    Path(str(program.path)).write_text("#!/bin/bash\n")
    found = find_old_version(old, version(NOW), "ovs")
    assert found.candidate is None
    assert found.sentence.endswith("ovs-3.1 is another file now (openvswitch-switch 3.1.0-2)")


def test_other_libraries_are_another_program(tmp_path: Path) -> None:
    shell = Path("/bin/sh")
    old = Program(str(shell), sha256(shell), "not those of now", "dash 0.5", None)
    found = find_old_version(version(old), version(NOW), "ovs")
    assert found.sentence == "the baseline's ovs cannot be started any more: /bin/sh has other libraries now (dash 0.5)"


def test_a_baseline_that_does_not_say_so(program: Program) -> None:
    found = find_old_version(None, version(program), "ovs")
    assert found.sentence == "the baseline does not say how its version is started: save it again"


def test_it_is_kept_with_the_baseline(program: Program) -> None:
    found = measurement(Case("ovs"), software=version(program))
    assert Measurement.from_json(found.to_json()) == found
    entry = make_entry(found)
    assert entry is not None
    (read_again,) = parse_baseline(format_baseline([entry]), "here")
    assert read_again.old == version(program)


def test_what_an_upgrade_will_replace_is_said_when_it_is_saved(program: Program) -> None:
    packaged, own = version(NOW), version(replace(program, package=None))
    assert explain_upgrades([("ovs", packaged), ("ovs", packaged), ("ovs", own), ("veth", None)]) == [
        (
            "an upgrade of openvswitch-switch replaces /usr/sbin/ovs-vswitchd: to compare with it later, save a run of"
            " a copy (--icbench-binary ovs=COPY)"
        )
    ]
