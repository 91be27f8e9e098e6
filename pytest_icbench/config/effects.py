# SPDX-License-Identifier: BSD-3-Clause
"""Options without effect on the selected cases, which would otherwise be silent. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import GROUPS, Case
from pytest_icbench.model.load import Application, Frames, Startup

_Cases = Sequence[Case]


def check_variants(options: Options, cases: _Cases) -> None:
    """Raises UsageError for a candidate that no selected case is compared with: the run would decide nothing on it."""
    switches = dict.fromkeys(case.switch for case in cases)
    for candidate in options.variant:
        if not cases or any(map(candidate.concerns, cases)):
            continue
        remedy = f"is of {candidate.target} (they are of {', '.join(switches)}): select one (--icbench-switch"
        remedy += f" {candidate.target})"
        if candidate.everywhere:
            remedy = "sends frames of the workload: select one that does"
        if candidate.component is not None:
            remedy = "has a network function: give --icbench-function"
        raise UsageError(f"--icbench-variant: no selected case {remedy}, or leave {candidate.key} out")


def without_effect(options: Options, cases: _Cases, components: Collection[str] = ()) -> list[str]:
    """Returns a sentence for each option that changes nothing for the selected cases.

    Args:
        components: names of those that have a network function of the cases.
    """
    switches = {case.switch for case in cases}
    search = any(case.rate.loss_ratio is not None for case in cases)
    #: Whether the option was given, its name, whether it has an effect, and what it is about.
    checks: tuple[tuple[object, str, Callable[[], bool], str], ...] = (
        (options.blocking, "blocking", lambda: any(case.blocking for case in cases), "no selected case has sockets"),
        (
            options.app,
            "app",
            lambda: any(isinstance(case.load, Application) for case in cases),
            "no selected case has an application",
        ),
        (
            options.birth,
            "birth",
            lambda: any(isinstance(case.load, Startup) for case in cases),
            "no selected case creates containers",
        ),
        (options.function, "function", lambda: _has_frames(cases), "no selected case sends frames of the workload"),
        (options.neighbour, "neighbour", lambda: _has_frames(cases), "no selected case sends frames of the workload"),
        *(
            (
                getattr(options, name),
                name.replace("_", "-"),
                lambda: any(case.function for case in cases),
                "no selected case has a network function",
            )
            for name in ("function_count", "chain", "share", "cap")
        ),
        (options.pf, "pf", lambda: "sriov" in switches, "no selected case is of sriov"),
        (options.uplink, "uplink", lambda: any(case.remote for case in cases), "no selected case is on two hosts"),
        *(
            (getattr(options, name), name.replace("_", "-"), lambda: search, "no selected case searches for ndr or pdr")
            for name in ("search_preset", "search_width", "search_trial", "search_sum")
        ),
        *(
            (True, f"{option} {name}", lambda name=name, of=of: name in of, f"no selected case is of {name}{more}")
            for option, named, of, more in (
                (
                    *("switch", [word.partition(":")[0] for word in options.switch]),
                    *(switches, ": it keeps some, and adds none"),
                ),
                ("binary", options.binaries, {*switches, *components}, ""),
                ("switch-config", options.switch_config, switches, ""),
            )
            for name in named
            if name not in GROUPS
        ),
    )
    return [
        f"--icbench-{name} has no effect: {reason}"
        for given, name, has_effect, reason in checks
        if cases and given and not has_effect()
    ]


def _has_frames(cases: _Cases) -> bool:
    return any(isinstance(case.load, Frames) for case in cases)
