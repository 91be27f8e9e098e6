# SPDX-License-Identifier: BSD-3-Clause
"""Cases spread over several hosts."""
