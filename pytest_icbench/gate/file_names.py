# SPDX-License-Identifier: BSD-3-Clause
"""Names of files that users write, apart from their readers so that looking for a file loads no reader."""

from __future__ import annotations

#: The limits, next to a scenario's file.
LIMITS_FILE = "thresholds.toml"
