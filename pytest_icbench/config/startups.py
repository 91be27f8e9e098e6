# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which containers are created in sequence. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Startup
from pytest_icbench.model.startup import FORK
from pytest_icbench.wording import suggestion

#: Each container gets a veth pair, and no switch is measured.
LINK = "veth"


def startup_arguments(named: Iterable[str], where: str) -> dict[str, Any]:
    """Returns the arguments of a marker that follow from ``startup``.

    Args:
        named: the names of the given arguments, without settings. Raises UsageError for any but ``startup``.
    """
    if others := [name for name in named if name != "startup"]:
        raise UsageError(f"{where}: start-up creates containers and sends no traffic; leave out {', '.join(others)}")
    return {"dimension": "startup", "switch": (LINK,)}


def startup_cases(labels: Iterable[str]) -> list[Case]:
    """Returns the cases of crowds."""
    return [Case(switch=LINK, load=Startup(label), dimension="startup") for label in dict.fromkeys(labels)]


def check_startup_kinds(cases: Iterable[Case], kinds: Iterable[str]) -> None:
    """Raises UsageError for containers of a kind that is not among ``kinds``."""
    known = (*kinds, FORK)
    for case in cases:
        crowd = case.load.crowd
        if crowd is not None and crowd.kind not in known:
            raise UsageError(f"start-up: there is no kind of node '{crowd.kind}'{suggestion(crowd.kind, known)}")
