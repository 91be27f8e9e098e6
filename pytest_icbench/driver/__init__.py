# SPDX-License-Identifier: BSD-3-Clause
"""Drivers of switches, nodes, functions and applications, and the interface to the workload."""
