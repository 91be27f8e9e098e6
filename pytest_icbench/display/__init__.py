# SPDX-License-Identifier: BSD-3-Clause
"""How results are shown, whatever their kind: their axes in words, columns of tables, charts. Pure."""
