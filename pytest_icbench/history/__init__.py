# SPDX-License-Identifier: BSD-3-Clause
"""Results of many runs: an append-only file, and trends by case with their change points. Pure but for the file."""
