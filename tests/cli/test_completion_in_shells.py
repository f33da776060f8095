"""Completion in real shells, driven through a terminal: what pressing Tab puts on the command line."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.tiny import GEMM, Tiny

SECONDS = 60  # on a machine that does much else
SHELLS = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
SETUP = {
    "bash": 'eval "$(tracedb completion bash)"',
    "zsh": 'autoload -Uz compinit && compinit -u -D; eval "$(tracedb completion zsh)"',
    "fish": "tracedb completion fish | source",
}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._seen = ""

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait(self, text: str) -> None:
        """Read until the text is on the screen; what came before it is forgotten."""
        end = time.monotonic() + SECONDS
        while text not in self._seen:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"no {text!r} in {self._seen!r}"
            self._seen += os.read(self._master, 65_536).decode(errors="replace")
        self._seen = self._seen.partition(text)[2]


@contextmanager
def shell(name: str, folder: Path) -> Iterator[Terminal]:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    scripts = sysconfig.get_path("scripts")
    names = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb", "PS1": "$ "}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [program, *SHELLS[name]],
        cwd=folder,
        env=names,
        pass_fds=[slave],
        preexec_fn=lambda: os.login_tty(slave),  # fish wants the terminal to be its own
    )
    os.close(slave)
    try:
        yield Terminal(master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize("name", SHELLS)
def test_tab_completes(name: str, tmp_path: Path) -> None:
    """Commands, reports, and labels of the database that the line names."""
    tiny = Tiny(tmp_path / "run.duckdb")
    for value in ("blue", "green"):
        tiny.capture(0, {"colour": value})
        tiny.kernel(GEMM, 0, 1)
    tiny.save()
    with shell(name, tmp_path) as terminal:
        terminal.send(f"{SETUP[name]}; echo re''ady\n")
        terminal.wait("ready")
        terminal.send("tracedb repo\t")
        terminal.wait("tracedb report ")
        terminal.send("top-k\t")
        terminal.wait("top-kernels ")
        terminal.send("--db run.duckdb --where colour=g\t")
        terminal.wait("colour=green")
