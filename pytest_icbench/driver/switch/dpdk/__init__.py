# SPDX-License-Identifier: BSD-3-Clause
"""DPDK programs as switches."""
