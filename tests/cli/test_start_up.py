"""Start-up is fast: nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).resolve().parents[2] / "examples" / "run"
KERNEL_TRACE = """Kind,Agent_Id,Queue_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp
KERNEL_DISPATCH,1,1,1,gemm,1,1000,2000
"""
HEAVY = ("torch", "polars", "sqlglot", "duckdb", "pyarrow", "rich", "numpy", "msgspec", "isal")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_the_command_line_imports_nothing_heavy() -> None:
    loaded = run(
        "import sys, tracedb.cli.main; print(*sorted(name for name in sys.modules if '.' not in name))"
    ).split()
    assert "click" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys, tracedb.cli.main
try: tracedb.cli.main.cli(["--help"])
except SystemExit: pass
print("MODULES", *sorted(name for name in sys.modules if "." not in name))
"""
    text, _, loaded = run(code).partition("MODULES")
    assert "report" in text
    assert [name for name in HEAVY if name in loaded.split()] == []


def test_looking_at_a_folder_imports_neither_duckdb_nor_arrow(tmp_path: Path) -> None:
    """A large trace is read while those are imported, so what comes before must not need them."""
    (tmp_path / "1_kernel_trace.csv").write_text(KERNEL_TRACE)
    (tmp_path / "note.txt").write_text("no trace")
    code = f"""
import sys, pathlib
from tracedb.pipeline import discovery
import tracedb.cli.ingest, tracedb.pipeline.run
found = discovery.detect(discovery.discover([pathlib.Path({str(RUN)!r}), pathlib.Path({str(tmp_path)!r})]))
print(*sorted({{task.source for task in found.tasks}}), *sorted(name for name in sys.modules if "." not in name))
"""
    loaded = run(code).split()
    assert loaded[:2] == ["rocprof", "torch"]
    assert [name for name in ("duckdb", "pyarrow", "numpy", "msgspec") if name in loaded] == []


def test_help_is_quick() -> None:
    """In seconds of processor time, which other work on the machine does not change much."""
    assert min(cpu_seconds("-m", "tracedb", "--help") for _ in range(3)) - cpu_seconds("-c", "pass") < 0.3


def cpu_seconds(*arguments: str) -> float:
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_the_package_imports_nothing() -> None:
    code = "import sys, tracedb, tracedb.report; print(*sorted(name for name in sys.modules if '.' not in name))"
    loaded = run(code).split()
    assert [name for name in (*HEAVY, "click", "importlib.metadata") if name in loaded] == []


def test_public_names_come_when_asked_for() -> None:
    code = "import tracedb; print(tracedb.connect.__name__, tracedb.Rows.__name__, tracedb.__version__)"
    assert run(code).split()[:2] == ["connect", "Rows"]


def test_the_public_names_are_listed_before_they_are_imported() -> None:
    listed = run("import sys, tracedb; print(*dir(tracedb)); print('duckdb' in sys.modules)").split()
    assert {"Capture", "Ingester", "Options", "Rows", "connect", "ingest", "report"} <= set(listed)
    assert not {"TYPE_CHECKING", "annotations"} & set(listed)
    assert listed[-1] == "False"


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert "module 'tracedb' has no attribute 'nothing'" in run(
        "import tracedb\ntry: tracedb.nothing\nexcept AttributeError as error: print(error)"
    )
