# SPDX-License-Identifier: BSD-3-Clause
"""Throughput: the rate that a path passes at the maximum, or at a load."""
