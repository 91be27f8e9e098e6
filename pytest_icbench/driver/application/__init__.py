# SPDX-License-Identifier: BSD-3-Clause
"""Applications: real servers with their real clients, one file each."""
