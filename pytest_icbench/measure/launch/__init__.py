# SPDX-License-Identifier: BSD-3-Clause
"""One launch: commands, processes, windows, validity, preflight."""
