# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the system's OpenSSH, and what its words mean. Pure.

The user's configuration, agent, keys and host-key checking stay in force. Nobody is asked for a password: BatchMode.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

#: A dead connection is noticed within 15 s. No forwardings that a configuration asks for: nothing is to listen.
OPTIONS = (
    *("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes"),
)
#: What the shell over there says if it finds no Python.
_NO_PYTHON = "icbench-remote: no Python"
#: Exit code of ssh itself, when it is not the command's.
SSH_FAILED = 255

_SUDO = "let the user run Python by sudo without a password there, or name root@HOST"

#: What ssh, sudo and the shell over there say, and what it means, the first that fits. What they say has names and
#: addresses of hosts in it, and what is made of it can end up in a report: so it is only looked at.
_REFUSALS = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is another one than known here: find out why, then mend known_hosts (ssh-keygen -R)",
    ),
    (
        "Host key verification failed",
        "its host key is not known here: connect once by hand (ssh) and compare the fingerprint",
    ),
    (
        r"Permission denied \(|Too many authentication failures",
        "it accepts none of the keys that ssh offers: install one there (ssh-copy-id), or load it (ssh-add)",
    ),
    ("sudo: (command )?not found|sudo: No such file", "it has no sudo: name root@HOST"),
    (r"sudo: .*(password|\btty\b|terminal)", f"sudo wants a password there: {_SUDO}"),
    ("not in the sudoers|not allowed to|may not run sudo", f"sudo does not let the user run Python there: {_SUDO}"),
    (_NO_PYTHON, "it has no such Python: name one there with --icbench-remote-python"),
    ("Could not resolve hostname", "its name cannot be resolved: see ssh's configuration"),
    ("Connection refused", "nobody takes connections there: start its sshd, or see the port in ssh's configuration"),
    ("No route to host|[Uu]nreachable", "there is no way to it: see this host's routes, and whether it is up"),
    ("timed out|not responding", "it does not answer: see whether it is up, and for firewalls between"),
    ("Unable to negotiate", "its sshd and the ssh here have no method in common: see ssh's configuration"),
    (
        "Bad configuration option|Bad owner or permissions|bad configuration options",
        "ssh cannot read its own configuration here: run ssh by hand and mend what it names",
    ),
    (
        "Connection (closed|reset)|closed by remote host|kex_exchange_identification|Broken pipe",
        "its sshd hung up before Python started: see its log there",
    ),
)
_LOSSES = (
    ("not responding|timed out", "nothing was heard from it any more"),
    ("closed by", "it was closed over there"),
    ("reset|Broken pipe", "it was cut"),
    ("[Uu]nreachable|No route to host", "there was no way to it any more"),
)

#: A process group of its own: Ctrl-C at the terminal is for pytest, which then cleans up over this very connection.
#: What execnet adds to the command line, the arguments of a local Python, is left alone.
_LOCAL = 'echo $$ >"$2"; exec setsid {} 2>"$1"'
#: By which connection it came, which sudo takes out of the environment, is handed on: that NIC is not for frames.
_BOOTSTRAP = "import os,sys;os.environ['SSH_CONNECTION']=sys.argv[1];exec(eval(sys.stdin.readline()))"


def remote_command(pythons: Sequence[str]) -> str:
    """What the login shell over there is given: the first of the Pythons that exists, as root."""
    script = (
        'sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"; '
        f"for python in {' '.join(pythons)}; do "
        'if command -v "$python" >/dev/null 2>&1; then '
        f'exec $sudo "$python" -u -c "{_BOOTSTRAP}" "$SSH_CONNECTION"; fi; done; '
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


def explain(words: str) -> str:
    """Half a sentence: why there is no connection, and the remedy. Nothing in it is ssh's own word."""
    found = _meaning(words, _REFUSALS)
    if found is None:
        said = "ssh said something else than is known here" if words.strip() else "ssh ended without a word"
        found = f"{said}: see that `ssh HOST true` works by hand, without a password"
    return found


def why_lost(words: str) -> str | None:
    """Half a sentence: how a connection ended; None if nobody told. Nothing in it is ssh's own word."""
    return _meaning(words, _LOSSES)


def _meaning(words: str, known: Sequence[tuple[str, str]]) -> str | None:
    return next((meaning for pattern, meaning in known if re.search(pattern, words)), None)
