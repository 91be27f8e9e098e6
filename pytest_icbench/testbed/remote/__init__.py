# SPDX-License-Identifier: BSD-3-Clause
"""A second host: the connection, what runs at its other end, and the calls that cross it as plain JSON data."""
