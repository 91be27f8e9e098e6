# SPDX-License-Identifier: BSD-3-Clause
"""Whether the tool's numbers can be believed: claims, each measured against its bound, and the page that shows them.

`make validate` runs all; docs/explanation/validation.md is the page. One module a claim in `claims/`; `model.py` has
their shape.
"""
