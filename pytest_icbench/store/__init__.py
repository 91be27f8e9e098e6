# SPDX-License-Identifier: BSD-3-Clause
"""Everything that is on disk."""
