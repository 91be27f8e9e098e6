# SPDX-License-Identifier: BSD-3-Clause
"""Links and network cards."""
