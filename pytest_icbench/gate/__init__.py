# SPDX-License-Identifier: BSD-3-Clause
"""Limits, margins and baselines: one verdict."""

#: The limits beside a scenario's file. Whether there is one is asked before what reads it is loaded.
LIMITS_FILE = "thresholds.toml"
