# SPDX-License-Identifier: BSD-3-Clause
"""What the gate of 28 November (b55e119d) found on the hosts of `gate.py`, in sessions of ten minutes.

Its comparison of versions took two looks and a margin; over sessions it held one against ten before it. Shares of 200
cases each, slower by 3, 5, 10 and 20 %.
"""

from __future__ import annotations

from collections.abc import Mapping

BEFORE: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "launches 2 %": {"pairs": (0.0, 0.42, 1.0, 1.0), "sessions": (0.0, 0.25, 0.98, 1.0)},
    "launches 8 %": {"pairs": (0.0, 0.01, 0.67, 1.0), "sessions": (0.0, 0.0, 0.12, 0.85)},
    "launches 30 %": {"pairs": (0.0, 0.01, 0.01, 0.23), "sessions": (0.0, 0.0, 0.0, 0.01)},
    "sessions 1 %": {"pairs": (0.0, 0.51, 0.99, 1.0), "sessions": (0.0, 0.0, 0.34, 1.0)},
    "sessions 5 %, shared": {"pairs": (0.0, 0.46, 1.0, 1.0), "sessions": (0.0, 0.0, 0.19, 0.93)},
    "sessions 5 %, own": {"pairs": (0.0, 0.47, 0.99, 1.0), "sessions": (0.0, 0.0, 0.0, 0.02)},
    "launches 8 %, two states": {"pairs": (0.0, 0.0, 0.54, 1.0)},
}
