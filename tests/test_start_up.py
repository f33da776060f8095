"""Starting costs little: nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("torch", "polars", "sqlglot", "duckdb", "pyarrow", "rich", "numpy", "msgspec", "isal")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_the_command_line_imports_nothing_heavy() -> None:
    loaded = run("import sys, tracedb.cli; print(*sorted(name for name in sys.modules if '.' not in name))").split()
    assert "click" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys, tracedb.cli
try: tracedb.cli.cli(["--help"])
except SystemExit: pass
print("MODULES", *sorted(name for name in sys.modules if "." not in name))
"""
    text, _, loaded = run(code).partition("MODULES")
    assert "report" in text
    assert [name for name in HEAVY if name in loaded.split()] == []


def test_help_is_quick() -> None:
    """In seconds of processor time, which other work on the machine does not change much."""
    assert min(cpu_seconds("-m", "tracedb", "--help") for _ in range(3)) - cpu_seconds("-c", "pass") < 0.3


def cpu_seconds(*arguments: str) -> float:
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_the_package_imports_nothing() -> None:
    loaded = run("import sys, tracedb; print(*sorted(name for name in sys.modules if '.' not in name))").split()
    assert [name for name in (*HEAVY, "click", "importlib.metadata") if name in loaded] == []


def test_public_names_come_when_asked_for() -> None:
    code = "import tracedb; print(tracedb.connect.__name__, tracedb.Rows.__name__, tracedb.__version__)"
    assert run(code).split()[:2] == ["connect", "Rows"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert "module 'tracedb' has no attribute 'nothing'" in run(
        "import tracedb\ntry: tracedb.nothing\nexcept AttributeError as error: print(error)"
    )
