# SPDX-License-Identifier: BSD-3-Clause
"""Measuring: a case on a rig becomes a Measurement."""
