# SPDX-License-Identifier: BSD-3-Clause
"""Vega, Vega-Lite and Vega-Embed (BSD-3-Clause) as one script that a page holds in itself.

They come with the package vl-convert-python, so that neither making nor opening a page needs a network.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache

#: The script sets this name.
GLOBAL = "icbenchVega"
#: Said where the library is missing.
MISSING = "there are no figures: they need the library vl-convert-python (pip install 'pytest-icbench[html]')"


def available() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("vl_convert") is not None


@cache
def script() -> str:
    """The script, about 900 kB, made in seconds; empty without the library. Safe within a ``script`` element."""
    if not available():
        return ""
    library = importlib.import_module("vl_convert")
    text: str = library.javascript_bundle(f"window.{GLOBAL} = {{embed: vegaEmbed}};")
    # It is a module: wrapped, so that its names stay its own.
    return "(function () {\n" + re.sub("</(?=script)", r"<\\/", text, flags=re.IGNORECASE) + "\n})();"
