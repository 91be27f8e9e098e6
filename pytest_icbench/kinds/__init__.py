# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of measurement, one folder each, independent of each other. ``registry`` has a row for each."""
