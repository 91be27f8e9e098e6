# SPDX-License-Identifier: BSD-3-Clause
"""What a host has to survive: sessions killed at any moment, faults by table, inputs without end. See ``__main__``."""
