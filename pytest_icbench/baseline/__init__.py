# SPDX-License-Identifier: BSD-3-Clause
"""Saved figures and what is measured now against them. Pure but for ``store`` and ``waivers``, which read and write."""
