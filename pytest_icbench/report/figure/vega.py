# SPDX-License-Identifier: BSD-3-Clause
"""Vega, Vega-Lite and Vega-Embed (BSD-3-Clause) as one script that is embedded in the page.

They come with the package vl-convert-python, so that neither writing nor opening a page needs a network.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache

#: The global name that the script sets.
GLOBAL = "icbenchVega"
#: The message where the library is missing.
MISSING = "there are no charts: they need the library vl-convert-python (pip install 'pytest-icbench[html]')"


def available() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("vl_convert") is not None


@cache
def script() -> str:
    """Returns the script, safe in a ``script`` element: about 900 kB, built in seconds; empty without the library."""
    if not available():
        return ""
    library = importlib.import_module("vl_convert")
    text: str = library.javascript_bundle(f"window.{GLOBAL} = {{embed: vegaEmbed}};")
    # The bundle is a module: the function keeps its names out of the global scope.
    return "(function () {\n" + re.sub("</(?=script)", r"<\\/", text, flags=re.IGNORECASE) + "\n})();"
