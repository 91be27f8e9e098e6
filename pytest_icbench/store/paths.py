# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of text to a component of a path. Pure."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_+.=-]", re.ASCII)


def path_part(text: str) -> str:
    """Escapes text as one component of a path, of 200 bytes at most and never empty, ``.`` or ``..``.

    All but ``A-Z a-z 0-9 _ + . = -`` is percent-escaped (UTF-8).
    """
    safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text)
    if safe.strip(".") == "":
        safe = safe.replace(".", "%2E") or "%"
    return safe[:200]
