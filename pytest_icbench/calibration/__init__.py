# SPDX-License-Identifier: BSD-3-Clause
"""``icbench calibrate``: which change the comparison of versions finds on this host, and in which time."""
