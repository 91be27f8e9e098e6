# SPDX-License-Identifier: BSD-3-Clause
"""Search: the greatest load that a path passes with no loss, or with a given loss."""
