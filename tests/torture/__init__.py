# SPDX-License-Identifier: BSD-3-Clause
"""Tortures a host by kills of sessions at any moment, a table of faults, and hostile inputs. See ``__main__``."""
