"""The ``console`` blocks of README: commands after ``$ ``, and their output.

``python docs/console.py`` replaces the output by the current one, as ``make docs`` does; a test runs the commands and
compares. Sizes of database files differ from run to run and are not compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
NOT_FOUND = 127  # the shell's exit status for a program that is not there
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIZE = re.compile(r"\b[\d.,]+ MB\b")


@dataclass(frozen=True)
class Command:
    """A command of a block, and the output that README shows."""

    line: str
    shown: str


def fenced(text: str, language: str) -> list[str]:
    """Return the contents of the fenced blocks of a language."""
    return [body for found, body in FENCE.findall(text) if found == language]


def commands(block: str) -> Iterator[Command]:
    """Yield the commands of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        while line.endswith("\\"):
            more, _, shown = shown.partition("\n")
            line = f"{line}\n{more}"
        yield Command(line, shown)


def prepared(folder: Path) -> Path:
    """Make ``folder`` look like a checkout to the commands: the examples are there."""
    (folder / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    return folder


def run(line: str, folder: Path) -> tuple[str, int]:
    """Run a command as a reader would, and return what it prints and its exit code. Raises ``CalledProcessError``."""
    environment = {key: value for key, value in os.environ.items() if key not in ("TRACEDB", "COLUMNS", "LINES")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    environment["PYTHONUNBUFFERED"] = "1"  # stderr and stdout in the order in which a terminal shows them
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout, done.returncode


def comparable(text: str) -> str:
    """Return text without what differs from run to run."""
    return "\n".join(SIZE.sub("… MB", line).rstrip() for line in text.strip("\n").split("\n"))


def refreshed(text: str) -> str:
    """Return README's text with the current output of its commands."""
    with tempfile.TemporaryDirectory() as name:
        folder = prepared(Path(name))

        def again(match: re.Match[str]) -> str:
            if match[1] != "console":
                return match[0]
            return f"```console\n{''.join(_again(command, folder) for command in commands(match[2]))}```"

        return FENCE.sub(again, text)


def _again(command: Command, folder: Path) -> str:
    said, code = run(command.line, folder)
    missing = code == NOT_FOUND  # not installed here, as the DuckDB shell may be; what is shown stays
    kept = missing or comparable(said) == comparable(command.shown)
    shown = command.shown.strip("\n") if kept else "\n".join(line.rstrip() for line in said.strip("\n").split("\n"))
    return f"$ {command.line}\n{shown}\n" if shown else f"$ {command.line}\n"


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
