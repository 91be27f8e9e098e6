# SPDX-License-Identifier: BSD-3-Clause
"""The plugin for a checkout that is not installed (``python -m pytest``); an installed one has its entry point."""

from __future__ import annotations

from importlib.metadata import entry_points

pytest_plugins = [] if "icbench" in entry_points(group="pytest11").names else ["pytest_icbench.plugin.hooks"]
