# SPDX-License-Identifier: BSD-3-Clause
"""Charts as Vega-Lite specifications."""
