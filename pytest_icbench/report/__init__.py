# SPDX-License-Identifier: BSD-3-Clause
"""Reports of results: tables, pages, charts and files for other programs."""
