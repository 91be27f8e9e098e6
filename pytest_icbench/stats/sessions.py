# SPDX-License-Identifier: BSD-3-Clause
"""Computes the change of a figure between earlier sessions and a new one, with its interval. Pure.

Launches lie within sessions, and sessions within a host's time. A session draws a level of its own: where memory lies,
what else runs, how warm the host is. Launches of one session know nothing of it, however many there are, so the unit is
the session (Kalibera and Jones, "Rigorous benchmarking in reasonable time", International Symposium on Memory
Management 2013). A session counts by the median of its launches. What the launches of a session leave unknown, and that
they depend on each other, is in the spread of these medians.

The interval is that of the prediction of one more session: Student's over the logarithms of the medians (Hahn and
Meeker, "Statistical Intervals", 4.7). Two sessions are the fewest; they give a wide one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_icbench.stats.quantiles import CONFIDENCE, Estimate, median
from pytest_icbench.stats.student import student_quantile

#: The fewest earlier sessions that tell how far sessions lie apart.
FEWEST_SESSIONS = 2


def change_of_session(
    now: Sequence[float], earlier: Sequence[Sequence[float]], confidence: float = CONFIDENCE
) -> Estimate:
    """Returns the new session's median over the geometric mean of the earlier ones', with its interval.

    An interval that does not hold 1 shows a change beyond what the sessions differ by.

    Args:
        now: the launches of the new session.
        earlier: the launches of each earlier session, at least one; below ``FEWEST_SESSIONS`` there is no interval.

    Raises:
        ValueError: there are no launches, or the median of some is not positive.
    """
    if not earlier:
        raise ValueError("a change needs an earlier session")
    medians = [median(session) for session in (now, *earlier)]
    if min(medians) <= 0:
        raise ValueError("a change needs positive medians")
    new, *before = (math.log(value) for value in medians)
    k = len(before)
    level = math.fsum(before) / k
    if k < FEWEST_SESSIONS:
        return Estimate(math.exp(new - level))
    variance = math.fsum((value - level) ** 2 for value in before) / (k - 1)
    arm = student_quantile(k - 1, (1 + confidence) / 2) * math.sqrt(variance * (1 + 1 / k))
    change = new - level
    return Estimate(math.exp(change), math.exp(change - arm), math.exp(min(change + arm, 700.0)), confidence)
