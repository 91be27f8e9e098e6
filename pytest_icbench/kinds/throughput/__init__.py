# SPDX-License-Identifier: BSD-3-Clause
"""Throughput: a path's forwarding rate at the maximum or a given offered load."""
