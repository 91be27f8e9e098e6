# SPDX-License-Identifier: BSD-3-Clause
"""Network functions between the ends of a pair."""
