"""Running the command line inside a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from support import held_databases
from tracedb.cli.main import cli


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    """Run a command; its stdout and stderr are apart in the result."""
    with held_databases.kept():
        return CliRunner().invoke(cli, [str(item) for item in arguments], input=stdin)


def report(db: Path, name: str, *options: str) -> list[dict[str, Any]]:
    """Return the rows of a report, which must succeed."""
    done = run("-q", "report", name, "--db", db, "--format", "json", *options)
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def calls(db: Path, *options: str) -> dict[str, int]:
    """Return the number of calls by kernel name."""
    return {row["name"]: row["calls"] for row in report(db, "top-kernels", *options)}
