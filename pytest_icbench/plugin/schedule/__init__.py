# SPDX-License-Identifier: BSD-3-Clause
"""How long cases take, and how the time is shared."""
