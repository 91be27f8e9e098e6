# SPDX-License-Identifier: BSD-3-Clause
"""What the gate of 28 November (b55e119d) found on the hosts of `gate.py`, in sessions of ten minutes.

Its comparison of versions took two looks and a margin; over sessions it held ten against a limit of its own. Of 500
cases each, slower by 3, 5, 10 and 20 %.
"""

from __future__ import annotations

from collections.abc import Mapping

BEFORE: Mapping[str, Mapping[str, tuple[float, ...]]] = {}
