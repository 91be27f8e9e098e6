# SPDX-License-Identifier: BSD-3-Clause
"""The C program seen from outside."""
