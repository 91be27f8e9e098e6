# SPDX-License-Identifier: BSD-3-Clause
"""The workload's own forwarder as a switch."""
