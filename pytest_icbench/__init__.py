# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks of communication between containers, as pytest tests."""
