# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with DPDK."""
