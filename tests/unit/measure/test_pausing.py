# SPDX-License-Identifier: BSD-3-Clause
"""What a switch raises when it pauses or goes on is the error of the case that it belongs to."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import ProvisionError
from tests.unit.scripted_rig import ScriptedRig, run


@pytest.mark.parametrize(("rig", "method"), [("case", "pause"), ("case", "resume"), ("ref", "pause")])
def test_an_error_of_the_case_is_no_fault_of_the_reference_link(rig: str, method: str) -> None:
    case, reference = ScriptedRig(name="case"), ScriptedRig(name="ref")
    reference.pause()

    def fail() -> None:
        raise ProvisionError(f"switch 'foo': {method}() raised KeyError: 'nix'")

    setattr({"case": case, "ref": reference}[rig], method, fail)
    with pytest.raises(ProvisionError, match=rf"^switch 'foo': {method}\(\)"):
        run(case, reference, repeats=2)


def test_a_reference_that_does_not_go_on_costs_the_ratio_alone() -> None:
    case, reference = ScriptedRig(name="case"), ScriptedRig(name="ref")

    def fail() -> None:
        raise ProvisionError("it hangs")

    reference.resume = fail  # type: ignore[method-assign]
    measured = run(case, reference, repeats=2)
    assert measured.ratio_to_reference is None
    assert "it hangs" in str(measured.reference_evidence)
