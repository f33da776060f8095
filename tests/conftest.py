"""Fixtures used by several test files."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support import machine, spark_cluster
from tracedb.pipeline import run as pipeline

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # Where a shell started the tests in the background; what they start would inherit it, and could not be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples are the same in every run: a test fails for a change of the code, not by chance.
settings.register_profile("fixed", derandomize=True, database=None)
settings.load_profile("fixed")

ROOT = Path(__file__).resolve().parents[1]

# Narration and tables must not depend on the terminal or the user's settings.
for name in ("TRACEDB", "COLUMNS", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)
# As commands have it: two busy threads take a hundred times as long for a small matrix where all cores are in use.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Programs that come with the tests' packages, as the DuckDB shell, lie beside their Python.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share those of the process that started them
    if "TMPDIR" not in os.environ and (in_memory := machine.folder_in_memory()):
        os.environ["TMPDIR"] = tempfile.tempdir = str(in_memory)
    CACHE = tempfile.TemporaryDirectory(prefix="tracedb-tests-")  # the user's own is left alone
    os.environ["XDG_CACHE_HOME"] = CACHE.name
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # hundreds of child processes would compile every module again
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(CACHE.name, "bytecode"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return the number of workers of ``-n auto``; None leaves it to the plugin, as where the environment names it."""
    is_ours = config.option.numprocesses == "auto" and "PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ
    return machine.workers(len(os.sched_getaffinity(0))) if is_ours and hasattr(os, "sched_getaffinity") else None


def pytest_collection_finish() -> None:
    """Keep the garbage collector from visiting thousands of tests again and again, which takes some 4 % of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the sample run of ``examples/run``: two configurations of four ranks."""
    path = tmp_path_factory.mktemp("sample") / "run.duckdb"
    outcomes = pipeline.ingest(ROOT / "examples" / "run", db=path)
    assert [outcome.error for outcome in outcomes] == [None] * 8
    return path


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark with two executors; for tests marked ``engine``."""
    with spark_cluster.started(tmp_path_factory.mktemp("warehouse")) as session:
        yield session
