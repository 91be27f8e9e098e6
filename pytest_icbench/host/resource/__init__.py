# SPDX-License-Identifier: BSD-3-Clause
"""What a measurement takes of the machine: CPUs, huge pages, devices."""
