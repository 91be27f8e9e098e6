# SPDX-License-Identifier: BSD-3-Clause
"""The part of a case's launches that one round of a session has. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_icbench.measure.stopping import fewest_launches
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.model.settings import Settings


@dataclass(frozen=True, slots=True)
class Part:
    """What one round measures of a case.

    Attributes:
        number: of the round, from 0.
        launches: the most launches of this round.
        seconds: the time for them; the first launch takes whatever it takes.
        gathered: what earlier rounds gathered, to which this one adds.
    """

    number: int
    launches: int
    seconds: float
    gathered: LaunchLog


def parts(settings: Settings, rounds: int, gathered: LaunchLog, seconds: float) -> Iterator[Part]:
    """Yields the parts of a case: a fixed number of launches spread evenly, else those that precision takes.

    Args:
        seconds: the time for the whole case; without effect on a fixed number of launches.
    """
    launches = settings.repeats
    for number in range(rounds):
        if launches is None:
            yield Part(number, math.ceil(fewest_launches(settings) / rounds), seconds / rounds, gathered)
        else:
            share = launches // rounds + (number < launches % rounds)
            yield Part(number, share, math.inf, gathered)
