# SPDX-License-Identifier: BSD-3-Clause
"""Start-up: how long containers take until they answer, one after the other or when clients call for them."""
