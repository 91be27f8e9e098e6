# SPDX-License-Identifier: BSD-3-Clause
"""Analyses C files by `clang --analyze` and `gcc -fanalyzer`: python scripts/analyse.py FILES.

Every finding is an error. An analyser that is missing here is named and left out, as are files whose libraries have no
headers here.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "workload" / "src"
DEFINED = ("-D_GNU_SOURCE", '-DICBENCH_VERSION="analysed"', '-DICBENCH_BUILD="analysed"')
#: Libraries by name: the headers that show that a file includes one, and the macro that enables it.
LIBRARIES = {
    "libdpdk": (r'<rte_|"io/dpdk_(port|compat)', "HAVE_DPDK"),
    "libxdp": (r'<(xdp|bpf)/|"io/xdp_port', "HAVE_XDP"),
}
#: Analysers and their options. Without a limit on the states of a function clang takes ten times as long. An optimising
#: gcc removes some faults before it analyses.
ANALYSERS = {
    "clang": (
        "--analyze",
        "-Xclang",
        "-analyzer-output=text",
        "-Xclang",
        "-analyzer-werror",
        "-Xclang",
        "-analyzer-config",
        "-Xclang",
        "max-nodes=20000",
    ),
    "gcc": ("-fanalyzer", "-Werror", "-S"),
}


def library_options() -> dict[str, list[str]]:
    """Returns the compiler's options for each library that this host has."""
    options: dict[str, list[str]] = {}
    if shutil.which("pkg-config") is None:
        return options
    for library, (_, define) in LIBRARIES.items():
        flags = subprocess.run(["pkg-config", "--cflags", library], capture_output=True, text=True, check=False)
        if flags.returncode == 0:
            # Headers of libraries are not analysed.
            options[library] = [f"-D{define}", *shlex.split(re.sub(r"(^|\s)-I", r"\1-isystem ", flags.stdout))]
    return options


def missing_library(source: Path, libraries: Sequence[str]) -> str | None:
    """Returns the library that the file needs and this host lacks; None if it has all."""
    text = source.read_text(encoding="utf-8")
    return next(
        (name for name, (header, _) in LIBRARIES.items() if name not in libraries and re.search(header, text)), None
    )


def findings(command: Sequence[str]) -> str:
    """Runs an analyser over one file. Returns its output if it found anything."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return done.stdout + done.stderr or f"{command[0]} ended with {done.returncode} on {command[-1]}\n"


def main(sources: Sequence[str]) -> int:
    """Analyses the files, as many at a time as there are CPUs. Returns the exit status."""
    options = library_options()
    chosen = []
    for source in sources:
        if (library := missing_library(Path(source), list(options))) is None:
            chosen.append(source)
        else:
            print(f"{source} is not analysed: no {library} here")
    common = ["-std=gnu11", *DEFINED, f"-I{SOURCES}", *(word for words in options.values() for word in words)]
    commands = []
    for analyser, own in ANALYSERS.items():
        if shutil.which(analyser) is None:
            print(f"no {analyser} here: install it to have the C program analysed by it")
            continue
        commands += [[analyser, *own, *common, "-o", os.devnull, source] for source in chosen]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = [text for text in pool.map(findings, commands) if text]
    print("\n".join(texts), end="")
    return int(bool(texts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
