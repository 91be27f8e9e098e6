# SPDX-License-Identifier: BSD-3-Clause
"""Measures a case on a rig: launches become a Measurement."""
