"""Ctrl-C while DuckDB is imported: the process ends as at any other time, and not by an abort of the native module."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import signal, sys
from tracedb.cli import native_import
from tracedb.cli.main import cli

class Interrupting:
    def __init__(self, loader): self.loader = loader
    def create_module(self, spec): return self.loader.create_module(spec)
    def exec_module(self, module):
        signal.raise_signal(signal.SIGINT)
        print("still importing")
        self.loader.exec_module(module)
        print("imported", hasattr(module, "DuckDBPyConnection"))

class Finder:
    def find_spec(self, name, path=None, target=None):
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec(name, path)
        spec.loader = Interrupting(spec.loader)
        return spec

native_import.PathFinder = Finder()
cli(sys.argv[1:])
"""


def test_an_interrupt_waits_until_the_native_module_is_complete() -> None:
    command = [sys.executable, "-c", PROGRAM, "report", "top-kernels", "--db", "none.duckdb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["still importing", "imported True"]
    assert (done.returncode, done.stderr) == (130, "\ntracedb: error: interrupted\n")
