# SPDX-License-Identifier: BSD-3-Clause
"""What another package can bring one more of: switches, nodes, workloads."""
