# SPDX-License-Identifier: BSD-3-Clause
"""Limits, margins and baselines: one verdict."""
