# SPDX-License-Identifier: BSD-3-Clause
"""Finds the version that a baseline was measured with, so that it can be started next to the present one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_icbench.host.host_facts import digest_libraries, sha256
from pytest_icbench.model.candidate import Candidate, OldVersion, Program

#: The name of the old version in the id of its case: ``ovs:before-64B-b32-1vs1-Rmax``.
BEFORE = "before"


@dataclass(frozen=True, slots=True)
class OldVersionFinding:
    """What became of an old version.

    Attributes:
        candidate: how it is started; None if it cannot be, or is the present one.
        sentence: what it is, or why there is none.
    """

    candidate: Candidate | None
    sentence: str


def find_old_version(old: OldVersion | None, now: OldVersion | None, switch: str) -> OldVersionFinding:
    """Looks for the version that a baseline's entry is of.

    ``old`` and ``now``: the software of the entry and of the present measurement.
    """
    if old is None or now is None:
        return OldVersionFinding(None, "the baseline does not say how its version is started: save it again")
    differing = old.differing(now)
    if not differing:
        return OldVersionFinding(None, "the switch, the workload and their configurations are those of the baseline")
    if "kernel" in differing:
        return OldVersionFinding(None, f"the baseline is of kernel {old.kernel}, which cannot run next to {now.kernel}")
    if "component" in differing:
        return OldVersionFinding(None, f"the functions were made by {old.component}, and are made by {now.component}")
    for part, program in old.programs():
        why = _why_gone(program, getattr(now, part))
        if why is not None:
            name = {"switch": switch, "function": str(old.component)}.get(part, part)
            return OldVersionFinding(None, f"the baseline's {name} cannot be started any more: {why}")
    names = {"switch": switch, "function": str(old.component), "config": "configuration"}
    names["function_config"] = f"configuration of {old.component}"
    parts = " and ".join(names.get(part, part) for part in differing)
    candidate = Candidate(switch, BEFORE, "old", parts, old=old)
    return OldVersionFinding(candidate, f"measured side by side with the baseline's version, which differs in {parts}")


def _why_gone(program: Program, now: Program | None) -> str | None:
    """Returns why a program cannot be started as it was; None if it can."""
    if program == now:
        return None
    was = f" ({program.package or program.version})" if program.package or program.version else ""
    if program.path is None:
        return f"its path is not known{was}"
    path = Path(program.path)
    if not path.is_file():
        return f"{path}{was} is gone"
    if program.sha256 is None or sha256(path) != program.sha256:
        return f"{path} is another file now{was}"
    if program.libraries is not None and digest_libraries(path) != program.libraries:
        return f"{path} has other libraries now{was}"
    return None


def explain_upgrades(saved: Iterable[tuple[str, OldVersion | None]]) -> list[str]:
    """Returns a sentence for each program that an upgrade will replace, so that nothing can start it afterwards.

    ``saved``: what a baseline keeps, each with its switch.
    """
    sentences: dict[str, None] = {}
    for switch, version in saved:
        if version is None:
            continue
        for part, program in replace(version, workload=None).programs():
            if program.package is not None:
                name = switch if part == "switch" else version.component
                package = program.package.partition(" ")[0]
                sentences[
                    f"an upgrade of {package} replaces {program.path}: to compare with it later, save a run of a copy"
                    f" (--icbench-binary {name}=COPY)"
                ] = None
    return list(sentences)
