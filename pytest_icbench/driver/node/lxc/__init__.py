# SPDX-License-Identifier: BSD-3-Clause
"""LXC containers as nodes."""
