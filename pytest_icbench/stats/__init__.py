# SPDX-License-Identifier: BSD-3-Clause
"""Statistics: numbers in, numbers out."""
