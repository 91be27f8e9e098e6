# SPDX-License-Identifier: BSD-3-Clause
"""The path between containers that run already, whatever it is made of."""
