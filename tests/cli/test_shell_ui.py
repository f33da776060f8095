"""``tracedb shell -ui``: DuckDB's UI where its extension is there, else one line that says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from support.command import run
from support.tiny import GEMM, Tiny

SCRIPTS = sysconfig.get_path("scripts")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = Tiny(tmp_path_factory.mktemp("ui") / "it's.duckdb")
    tiny.capture(0)
    tiny.kernel(GEMM, 0, 1)
    return tiny.save()


def test_without_a_shell(db: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("shell", "-ui", "--db", db)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pip install duckdb-cli" in done.stderr


def test_without_the_extension(db: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real shell, whose home has no extensions; it is only asked, and nothing is installed."""
    if shutil.which("duckdb", path=SCRIPTS) is None:
        pytest.skip("duckdb-cli is not installed")
    monkeypatch.setenv("PATH", SCRIPTS)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("shell", "-ui", "--db", db)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "INSTALL ui" in done.stderr
    assert not list(tmp_path.rglob("*.duckdb_extension"))


def test_with_the_extension(db: Path, tmp_path: Path) -> None:
    """The command that is run in place of tracedb; the extension cannot be had without a network, so a script is it."""
    program = tmp_path / "duckdb"
    program.write_text('#!/bin/sh\ncase "$*" in *duckdb_extensions*) echo true;; *) printf "%s\\n" "$@";; esac\n')
    program.chmod(0o755)
    names = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [str(Path(SCRIPTS) / "tracedb"), "shell", "-ui", "--db", str(db)]
    said = subprocess.run(command, env=names, capture_output=True, text=True, check=True).stdout.splitlines()
    assert (said[0], said[2]) == ("-cmd", "-ui")
    assert "ATTACH '" in said[1] and "it''s.duckdb' AS trace (READ_ONLY)" in said[1] and "INSTALL" not in said[1]
    if shutil.which("duckdb", path=SCRIPTS):  # what it is told first opens the file
        shell = [str(Path(SCRIPTS) / "duckdb"), "-init", os.devnull, *said[:2], "-noheader", "-list", "-c"]
        asked = [*shell, "SELECT calls FROM top_kernels"]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "1\n"


def test_what_does_not_go_together(db: Path) -> None:
    assert run("shell", "-ui", "--builtin", "--db", db).exit_code == 2
