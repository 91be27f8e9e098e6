# SPDX-License-Identifier: BSD-3-Clause
"""The user's request: options, files, and the cases that follow from them."""
