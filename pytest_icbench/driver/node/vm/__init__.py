# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines as nodes."""
