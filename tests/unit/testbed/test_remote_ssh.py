# SPDX-License-Identifier: BSD-3-Clause
"""ssh's command line and last words: one sentence each, and neither a name nor an address of a host in it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.testbed.remote import ssh_command

HOST = "admin@lab7.example.org"


#: Of a host whose name in ssh's configuration is another one than was typed.
SECRETS = ("lab7", "b3", "example.org", "10.1.2.3", "2001:db8::7", "admin", "SHA256")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("No ED25519 host key is known for lab7.\nHost key verification failed.", "its host key is not known here"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nSHA256:abc.\nHost key verification failed.",
            "its host key differs from the known one",
        ),
        ("admin@lab7.example.org: Permission denied (publickey).", "it accepts none of the keys that ssh offers"),
        ("sudo: a password is required", "let the user run Python by sudo without a password"),
        ("sudo: unable to resolve host b3\nsudo: a password is required", "sudo wants a password there"),
        ("sudo: unable to resolve host b3\nicbench-remote: no Python", "name one there with --icbench-remote-python"),
        ("Sorry, user admin is not allowed to execute '/usr/bin/python3' as root on b3.", "sudo does not let the user"),
        ("sh: 1: exec: sudo: not found", "it has no sudo: name root@HOST"),
        ("icbench-remote: no Python", "name one there with --icbench-remote-python"),
        ("ssh: Could not resolve hostname b3.example.org: Name or service not known", "its name cannot be resolved"),
        ("ssh: connect to host b3.example.org port 22: Connection refused", "start its sshd"),
        ("ssh: connect to host 2001:db8::7 port 22: No route to host", "there is no route to it"),
        ("ssh: connect to host 10.1.2.3 port 22: Connection timed out", "it does not answer"),
        ("Unable to negotiate with 10.1.2.3 port 22: no matching host key type found.", "no method in common"),
        ("/root/.ssh/b3.conf: line 3: Bad configuration option: nonsense", "cannot read its own configuration"),
        ("kex_exchange_identification: reset\r\nConnection reset by 10.1.2.3 port 22", "its sshd hung up"),
        ("", "ssh ended without a word: make sure that `ssh HOST true` works by hand"),
        ("b3.example.org was never heard of", "ssh gave an error that is not known here"),
    ],
)  # fmt: skip
def test_every_end_has_its_sentence(words: str, sentence: str) -> None:
    said = ssh_command.explain(words)
    assert sentence in said
    assert "\n" not in said
    assert not any(secret in said for secret in SECRETS)


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("Timeout, server b3.example.org not responding.", "nothing was heard from it any more"),
        ("Connection to 2001:db8::7 closed by remote host.", "it was closed at the other end"),
        ("client_loop: send disconnect: Broken pipe", "it was cut"),
        ("Read from remote host b3.example.org: Connection reset by peer", "it was cut"),
        ("b3.example.org is on fire", None),
        ("", None),
    ],
)
def test_a_loss_is_reported_without_ssh_s_own_words(words: str, meaning: str | None) -> None:
    assert ssh_command.explain_loss(words) == meaning


def script() -> str:
    """What the shell over there runs."""
    shell, flag, text = shlex.split(
        ssh_command.remote_command(["/nowhere/python", sys.executable]).removeprefix("exec ")
    )
    assert (shell, flag) == ("sh", "-c")
    return text


def test_the_first_python_that_exists_runs_as_root(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    for name in ("sh",):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    reported = repr("import sys; print(sys.executable)") + "\n"
    done = subprocess.run(
        ["sh", "-c", script()], input=reported, capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert (done.stdout.strip(), done.stderr) == (sys.executable, "")


def test_another_user_takes_sudo_and_is_never_asked(tmp_path: Path) -> None:
    for name, text in (("id", "echo 1000"), ("sudo", "printf '%s ' \"$@\"")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sh").symlink_to(str(shutil.which("sh")))
    done = subprocess.run(
        ["sh", "-c", script()], capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert done.stdout.startswith(f"-n {sys.executable} -u -c import os,sys")


def test_by_which_connection_it_came_outlives_sudo(tmp_path: Path) -> None:
    """sudo begins with an environment of its own."""
    for name, text in (("id", "echo 1000"), ("sudo", f'shift; exec {shutil.which("env")} -i "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sh").symlink_to(str(shutil.which("sh")))
    reported = repr("import os; print(dict(os.environ))") + "\n"
    environment = {"PATH": str(tmp_path), "SSH_CONNECTION": "198.51.100.1 40000 198.51.100.2 22", "OTHER": "x"}
    done = subprocess.run(
        ["sh", "-c", script()], input=reported, capture_output=True, text=True, check=False, env=environment
    )
    assert f"'SSH_CONNECTION': '{environment['SSH_CONNECTION']}'" in done.stdout
    assert "OTHER" not in done.stdout


def test_no_python_is_said(tmp_path: Path) -> None:
    command = shlex.split(ssh_command.remote_command(["/nowhere/python"]).removeprefix("exec "))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert ssh_command.explain(done.stderr).startswith("it has no such Python")


def test_what_execnet_adds_does_not_get_there(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\necho words >&2\nprintf '%s\\n' \"$@\"\n")
    (tmp_path / "ssh").chmod(0o755)
    argv = shlex.split(
        ssh_command.gateway_spec(HOST, "python3.13", tmp_path / "log", tmp_path / "pid").partition("python=")[2]
    )
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        [*argv, "-u", "-c", "import sys;exec(1)"], capture_output=True, text=True, check=True, env=environment
    )
    words = done.stdout.splitlines()
    assert words[-2:] == [HOST, ssh_command.remote_command(["python3.13"])]
    assert (tmp_path / "log").read_text() == "words\n"
    assert (tmp_path / "pid").read_text().strip().isdigit()


def test_nobody_is_asked_and_nothing_is_forwarded() -> None:
    spec = ssh_command.gateway_spec(HOST, "/opt/venv/bin/python", Path("/tmp/log"), Path("/tmp/pid"))
    assert "//" not in spec.partition("python=")[2]  # which would end the value
    words = shlex.split(shlex.split(spec.partition("python=")[2])[2])
    for option in ("BatchMode=yes", "ClearAllForwardings=yes", "ServerAliveInterval=5"):
        assert option in words
    assert words[words.index("--") + 1] == HOST
    assert not any("StrictHostKeyChecking" in word or "IdentityFile" in word for word in words)


def test_what_ssh_writes_has_a_bound_and_the_connection_outlives_it(tmp_path: Path) -> None:
    """All that comes from the other host's standard error is in memory here."""
    (tmp_path / "ssh").write_text("#!/bin/sh\nhead -c 9000000 /dev/zero >&2\necho alive\n")
    (tmp_path / "ssh").chmod(0o755)
    spec = ssh_command.gateway_spec(HOST, None, tmp_path / "log", tmp_path / "pid")
    argv = shlex.split(spec.partition("python=")[2])
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert done.stdout == "alive\n"
    assert (tmp_path / "log").stat().st_size == 2**20
