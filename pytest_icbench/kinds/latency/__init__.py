# SPDX-License-Identifier: BSD-3-Clause
"""Latency: round trips of frames."""
