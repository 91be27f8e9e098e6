# SPDX-License-Identifier: BSD-3-Clause
"""What this host can tell apart, and how long it takes."""
