# SPDX-License-Identifier: BSD-3-Clause
"""How long cases take, and who gets the time."""
