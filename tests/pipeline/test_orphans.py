"""Worker processes whose parent was killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.traces import launched, write
from tracedb.pipeline import discovery, worker_messages, worker_pool
from tracedb.pipeline.task import Request


def test_worker_writes_nothing_once_its_parent_is_gone(tmp_path: Path) -> None:
    """It waits for its turn at the database when the parent ends: the others of that may be writing."""
    trace, db = write(tmp_path / "x.json", launched(5)), tmp_path / "run.duckdb"
    with discovery.found_in([trace], db) as found:
        tasks = worker_messages.text(found.tasks)
    setup = worker_messages.text(worker_messages.Setup(Request(paths=(trace,), database=db), {}, 1.0))
    command = [sys.executable, "-c", worker_pool.QUIET_START.format("tracedb.pipeline.worker_process")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f"{setup}\n{tasks}\n")
        worker.stdin.flush()
        for line in worker.stdout:
            if "turn" in json.loads(line):
                break
        worker.stdin.close()
        worker.stdout.close()
        assert worker.wait(30) == 130
    assert not db.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.json"]
