# SPDX-License-Identifier: BSD-3-Clause
"""Code that several switches share."""
