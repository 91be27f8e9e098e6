# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the system's OpenSSH, and the meaning of its messages. Pure.

The user's configuration, agent, keys and host-key checking stay in force. With BatchMode ssh asks for no password.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

#: A dead connection is noticed within 15 s. The configuration's forwardings are off: no port is to listen.
OPTIONS = (
    *("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes"),
)
#: Message of the remote shell if it finds no Python.
_NO_PYTHON = "icbench-remote: no Python"
#: Exit code of ssh itself, as against one of the command.
SSH_FAILED = 255

_SUDO = "let the user run Python by sudo without a password there, or name root@HOST"

#: Patterns of messages of ssh, sudo and the remote shell, each with its meaning. The first that matches counts. The
#: messages contain names and addresses of hosts. They are not quoted, because the meaning can get into a report.
_REFUSALS = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key differs from the known one: find out why, then correct known_hosts (ssh-keygen -R)",
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
    (
        "Connection refused",
        "no server accepts connections there: start its sshd, or see the port in ssh's configuration",
    ),
    ("No route to host|[Uu]nreachable", "there is no route to it: check this host's routes, and whether it is up"),
    ("timed out|not responding", "it does not answer: check whether it is up, and the firewalls between"),
    ("Unable to negotiate", "its sshd and the ssh here have no method in common: see ssh's configuration"),
    (
        "Bad configuration option|Bad owner or permissions|bad configuration options",
        "ssh cannot read its own configuration here: run ssh by hand and correct what it names",
    ),
    (
        "Connection (closed|reset)|closed by remote host|kex_exchange_identification|Broken pipe",
        "its sshd hung up before Python started: see its log there",
    ),
)
_LOSSES = (
    ("not responding|timed out", "nothing was heard from it any more"),
    ("closed by", "it was closed at the other end"),
    ("reset|Broken pipe", "it was cut"),
    ("[Uu]nreachable|No route to host", "there was no way to it any more"),
)

#: Ssh has its own process group: Ctrl-C at the terminal is for pytest, which then cleans up over this connection.
#: The arguments of a local Python, which execnet adds to the command line, are ignored.
#: What ssh writes is in memory: files have at most 1 MiB (2,048 blocks), and a signal that says so ends nothing.
_LOCAL = 'echo $$ >"$2"; trap "" XFSZ; ulimit -f 2048; exec setsid {} 2>"$1"'
#: Hands on a variable that sudo removes: it names the connection, whose NIC is not for frames.
_BOOTSTRAP = "import os,sys;os.environ['SSH_CONNECTION']=sys.argv[1];exec(eval(sys.stdin.readline()))"


def remote_command(pythons: Sequence[str]) -> str:
    """Returns the command for the remote login shell, which starts the first existing Python, as root."""
    script = (
        'sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"; '
        f"for python in {' '.join(pythons)}; do "
        'if command -v "$python" >/dev/null 2>&1; then '
        f'exec $sudo "$python" -u -c "{_BOOTSTRAP}" "$SSH_CONNECTION"; fi; done; '
        f'echo "{_NO_PYTHON}" >&2; exit 127'
    )
    return f"exec sh -c {shlex.quote(script)}"


def gateway_spec(host: str, python: str | None, log: Path, process: Path) -> str:
    """Returns execnet's specification of a local process whose pipes lead to a remote Python.

    Args:
        python: the user's choice; None: one at the same path as here, else ``python3``.
        log: file of ssh's messages.
        process: file of its process id.
    """
    pythons = [python] if python is not None else [sys.executable, "python3"]
    call = shlex.join(["ssh", *OPTIONS, "--", host, remote_command(pythons)])
    argv = ["sh", "-c", _LOCAL.format(call), "icbench-ssh", str(log), str(process)]
    return f"popen//execmodel=main_thread_only//python={shlex.join(argv)}"


def explain(words: str) -> str:
    """Returns a clause: why there is no connection, and the remedy. It quotes nothing from ssh."""
    meaning = _meaning(words, _REFUSALS)
    if meaning is None:
        symptom = "ssh gave an error that is not known here" if words.strip() else "ssh ended without a word"
        meaning = f"{symptom}: make sure that `ssh HOST true` works by hand, without a password"
    return meaning


def explain_loss(words: str) -> str | None:
    """Returns a clause: how a connection ended; None if that is not known. It quotes nothing from ssh."""
    return _meaning(words, _LOSSES)


def _meaning(words: str, known: Sequence[tuple[str, str]]) -> str | None:
    return next((meaning for pattern, meaning in known if re.search(pattern, words)), None)
