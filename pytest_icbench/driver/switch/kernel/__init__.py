# SPDX-License-Identifier: BSD-3-Clause
"""Switches that are links and bridges of the kernel."""
