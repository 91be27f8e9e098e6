# SPDX-License-Identifier: BSD-3-Clause
"""The differences that a comparison can detect on this host, and the time that it takes."""
