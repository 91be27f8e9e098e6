# SPDX-License-Identifier: BSD-3-Clause
"""What results keep of a rig's software."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionFacts, FunctionTerms
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.switch_facts import SwitchFacts
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.treatment import function_treatment, rig_treatment


def switch_treatment(program: Path | None) -> dict[str, Any]:
    rig = SimpleNamespace(
        placement=Placement("cooperative", (0,), (1, 1), (0,), 0, 128, where="one L3 (0-1)"),
        endpoints=[],
        switch_facts=SwitchFacts("1.0"),
        session=SimpleNamespace(precedence="none", idle="poll"),
        case=Case("ovs"),
    )
    treatment = rig_treatment(cast("Rig", rig), None, program)
    assert treatment["cpus"]["where"] == "one L3 (0-1)"
    assert treatment["idle"] == "poll"
    found: dict[str, Any] = treatment["switch"]
    return found


def test_two_builds_of_one_version_are_reported_apart(tmp_path: Path) -> None:
    program = tmp_path / "switchd"
    program.write_bytes(b"one build")
    before = switch_treatment(program)
    assert before["binary"] == f"switchd (sha256 {hashlib.sha256(b'one build').hexdigest()[:12]})"
    program.write_bytes(b"two builds")
    now = switch_treatment(program)
    assert (now["version"], now["binary"] == before["binary"]) == ("1.0", False)


def test_the_kernel_s_switches_have_no_program() -> None:
    assert switch_treatment(None)["binary"] is None


def test_flows_that_a_function_denies_are_a_treatment() -> None:
    """The id of a case is the same as before its launches had any."""

    def config(function: str, flows: str | None) -> Any:
        rig = SimpleNamespace(
            function_facts=[FunctionFacts("linux", config={"nft": "rules"})],
            terms=(FunctionTerms(function, acl_drop=LinuxFunction.acl_drop(function)),),
            case=Case("veth", Frames(Traffic().with_labels(flows, None)), function=function),
            placement=SimpleNamespace(functions=()),
        )
        return function_treatment(cast("Rig", rig), {})["function"]["config"]

    assert config("acl10+deny30", "100") == {"nft": "rules", "acl_drops": ["30:10:10000"]}
    assert config("acl10+deny30", None) == config("acl10", "100") == {"nft": "rules"}
