# SPDX-License-Identifier: BSD-3-Clause
"""Cases in which containers are created one after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.birth import FORK
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Startup
from pytest_icbench.wording import suggestion

#: Each container gets a veth pair, and no switch is measured.
LINK = "veth"


def birth_arguments(named: Iterable[str], where: str) -> dict[str, Any]:
    """Returns the arguments of a marker that follow from ``birth``.

    Args:
        named: the names of those that are given, without settings. Raises UsageError for others than ``birth``.
    """
    if others := [name for name in named if name != "birth"]:
        raise UsageError(f"{where}: birth creates containers and sends no traffic; leave out {', '.join(others)}")
    return {"dimension": "birth", "switch": (LINK,)}


def birth_cases(labels: Iterable[str]) -> list[Case]:
    """Returns the cases of crowds."""
    return [Case(switch=LINK, load=Startup(label), dimension="birth") for label in dict.fromkeys(labels)]


def check_birth_kinds(cases: Iterable[Case], kinds: Iterable[str]) -> None:
    """Raises UsageError for containers of a kind that is not among ``kinds``."""
    known = (*kinds, FORK)
    for case in cases:
        crowd = case.load.crowd
        if crowd is not None and crowd.kind not in known:
            raise UsageError(f"birth: there is no kind of node '{crowd.kind}'{suggestion(crowd.kind, known)}")
