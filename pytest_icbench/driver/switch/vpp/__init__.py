# SPDX-License-Identifier: BSD-3-Clause
"""FD.io VPP."""
