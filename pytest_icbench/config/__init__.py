# SPDX-License-Identifier: BSD-3-Clause
"""What the user asked for: options, files and the cases they make."""
