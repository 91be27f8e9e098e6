# SPDX-License-Identifier: BSD-3-Clause
"""Launches to figures."""
