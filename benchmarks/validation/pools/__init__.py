# SPDX-License-Identifier: BSD-3-Clause
"""Measurements that take too long for a claim's own check: they are recorded apart, as benchmarks/README.md says."""
