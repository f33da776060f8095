"""Check an installed wheel: it loads a folder of traces, and every compiled library is in use.

Run by cibuildwheel and by ``tests/test_packaging.py`` with the Python of the environment that has the wheel:
``python -P installed_wheel.py examples/run``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tracedb import ingester
from tracedb.intervals import native_nesting


def main() -> str | None:
    """Load the traces and say what was loaded, and with which readers; return what is wrong, None if nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "run.duckdb"
        tracedb("ingest", Path(sys.argv[1]).resolve(), "--db", db)
        answer = json.loads(tracedb("report", "top-kernels", "--db", db, "--format", "json"))
    calls = sum(row["calls"] for row in answer["rows"])
    readers = {name: facts["reader"] for name, facts in ingester.descriptions() if "reader" in facts}
    readers["nesting"] = "compiled" if native_nesting.library() is not None else "in Python"
    print(f"{calls:,} kernels loaded; " + ", ".join(f"{name}: {state}" for name, state in sorted(readers.items())))
    is_compiled = set(readers.values()) == {"compiled"}
    return None if calls and is_compiled else "no kernels were loaded, or not every compiled library is in use"


def tracedb(*arguments: str | Path) -> str:
    """Run the command of this environment and return its stdout."""
    command = [str(Path(sys.executable).with_name("tracedb")), *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
