# SPDX-License-Identifier: BSD-3-Clause
"""The settings and the time of a retest at a possible regression."""

from __future__ import annotations

import math

import pytest

from pytest_icbench.kinds.runs import estimate_s
from pytest_icbench.model.rate import MAXIMUM, Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.plugin.plan import retest_least_s, retest_settings

NDR = Rate(loss_ratio=0.0)
SETTINGS = Settings()


def test_each_launch_of_a_second_look_has_rigs_of_its_own() -> None:
    again = retest_settings(SETTINGS, math.inf, MAXIMUM)
    assert again.rebuild
    assert again.max_duration_s >= retest_least_s(SETTINGS, MAXIMUM)
    least_s = retest_least_s(SETTINGS, MAXIMUM)
    assert retest_settings(SETTINGS, least_s, MAXIMUM).max_duration_s == pytest.approx(least_s)


def test_a_search_is_done_once_more_as_a_whole() -> None:
    """A rig anew for each of its trials would take minutes; the retest begins with new ones anyway."""
    again = retest_settings(SETTINGS, math.inf, NDR)
    assert again == Settings(search_time_s=SETTINGS.search_limit_s)
    assert retest_settings(SETTINGS, 40.0, NDR).search_limit_s == 40.0
    assert retest_least_s(SETTINGS, NDR) == estimate_s(SETTINGS, reference=True, rate=NDR)
