# SPDX-License-Identifier: BSD-3-Clause
"""Lets tests import each other's tools (``tests.host.snapshot``), and gives them signals as a terminal does.

Last in the path: the installed package is the one tested.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

_CHECKOUT = str(Path(__file__).parent.parent)
if _CHECKOUT not in sys.path:
    sys.path.append(_CHECKOUT)

# A shell starts its background jobs with SIGINT ignored, and so would everything be that tests start.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)
