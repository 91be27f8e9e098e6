# SPDX-License-Identifier: BSD-3-Clause
"""The resources of the machine that a measurement takes: CPUs, huge pages, devices."""
