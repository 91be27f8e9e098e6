# SPDX-License-Identifier: BSD-3-Clause
"""The records that everything passes around, and their JSON."""
