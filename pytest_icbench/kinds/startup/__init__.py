# SPDX-License-Identifier: BSD-3-Clause
"""Start-up: how long containers take until they answer, created one after the other or on demand."""
