# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the system's OpenSSH, and what its last words mean. Pure.

The user's configuration, agent, keys and host-key checking stay in force. Nobody is asked for a password: BatchMode.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.errors import UsageError

_HOST = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9_][A-Za-z0-9._-]*|(?:[A-Za-z0-9._-]+@)?[0-9A-Fa-f:]+(?:%\w+)?")
_PYTHON = re.compile(r"[\w./+-]+")

#: A dead connection is noticed within 15 s. No forwardings that a configuration asks for: nothing is to listen.
OPTIONS = (
    *("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes"),
)
#: What the shell over there says if it finds no Python.
_NO_PYTHON = "icbench-remote: no Python"
#: Exit code of ssh itself, when it is not the command's.
SSH_FAILED = 255

#: A process group of its own: Ctrl-C at the terminal is for pytest, which then cleans up over this very connection.
#: What execnet adds to the command line, the arguments of a local Python, is left alone.
_LOCAL = 'echo $$ >"$2"; exec setsid {} 2>"$1"'
_BOOTSTRAP = "import sys;exec(eval(sys.stdin.readline()))"


def host_name(text: str, where: str) -> str:
    """``[USER@]HOST`` as ssh takes it, an alias of its configuration included. Raises UsageError."""
    if not _HOST.fullmatch(text):
        raise UsageError(f"{where}: '{text}' is no [USER@]HOST; ports and the like belong into ssh's configuration")
    return text


def python_path(text: str, where: str) -> str:
    """A Python over there. Raises UsageError."""
    if not _PYTHON.fullmatch(text) or "//" in text:
        raise UsageError(f"{where}: '{text}' is no path of a Python: letters, digits and . / + - _ only")
    return text


def remote_command(pythons: Sequence[str]) -> str:
    """What the login shell over there is given: the first of the Pythons that exists, as root."""
    script = (
        'sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"; '
        f"for python in {' '.join(pythons)}; do "
        'if command -v "$python" >/dev/null 2>&1; then '
        f'exec $sudo "$python" -u -c "{_BOOTSTRAP}"; fi; done; '
        f'echo "{_NO_PYTHON}" >&2; exit 127'
    )
    return f"exec sh -c {shlex.quote(script)}"


def gateway_spec(host: str, python: str | None, log: Path, process: Path) -> str:
    """For execnet: a local process whose pipes lead to a Python over there.

    Args:
        python: the user's choice; None: one at the same path as here, else ``python3``.
        log: where ssh's own words go.
        process: where its process id goes.
    """
    pythons = [python] if python is not None else [sys.executable, "python3"]
    call = shlex.join(["ssh", *OPTIONS, "--", host, remote_command(pythons)])
    argv = ["sh", "-c", _LOCAL.format(call), "icbench-ssh", str(log), str(process)]
    return f"popen//execmodel=main_thread_only//python={shlex.join(argv)}"


def anonymous(text: str, host: str) -> str:
    """The same without the host's name and without addresses: what is said here can end up in a report."""
    text = re.sub(r"\bconnect to host \S+ port", "connect to the remote host, port", text)
    for name in sorted({host, host.rpartition("@")[2]}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "the remote host", text)
    text = re.sub(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", "ADDRESS", text)
    text = re.sub(r"resolve hostname \S+:", "resolve its name:", text)
    return re.sub(r"\S+@ADDRESS|SHA256:\S+", "(hidden)", text)


def explain(words: str, host: str) -> str:
    """Half a sentence: why there is no connection, and the remedy."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    text = "\n".join(lines)
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in text:
        return "its host key is another one than known here: find out why, then mend known_hosts (ssh-keygen -R)"
    if "Host key verification failed" in text:
        return "its host key is not known here: connect once by hand (ssh) and compare the fingerprint"
    if "Permission denied" in text:
        return "it accepts none of the keys that ssh offers: install one there (ssh-copy-id), or load it (ssh-add)"
    if "sudo:" in text:
        said = next(line for line in lines if "sudo:" in line)
        return f"{said}: let the user run Python by sudo without a password there, or name root@HOST"
    if _NO_PYTHON in text:
        return "it has no such Python: name one there with --icbench-remote-python"
    if "Could not resolve hostname" in text:
        return "its name cannot be resolved: see ssh's configuration"
    last = anonymous(lines[-1], host) if lines else "ssh ended without a word"
    return f"{last}: see that ssh gets there by hand without a password"
