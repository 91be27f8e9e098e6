# SPDX-License-Identifier: BSD-3-Clause
"""What several switches share."""
