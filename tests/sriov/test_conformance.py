# SPDX-License-Identifier: BSD-3-Clause
"""What the card's own switch does with frames: the suite for all switches, with this directory's patience."""

from pytest_icbench.conformance.test_conformance import *  # noqa: F403
