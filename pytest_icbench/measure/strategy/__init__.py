# SPDX-License-Identifier: BSD-3-Clause
"""How launches follow each other."""
