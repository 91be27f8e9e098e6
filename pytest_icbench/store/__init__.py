# SPDX-License-Identifier: BSD-3-Clause
"""The files of runs, baselines, waivers and the history."""
