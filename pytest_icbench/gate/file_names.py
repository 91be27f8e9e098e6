# SPDX-License-Identifier: BSD-3-Clause
"""Names of files that users write; whether there is one is asked before what reads it is loaded."""

from __future__ import annotations

#: The limits beside a scenario's file.
LIMITS_FILE = "thresholds.toml"
