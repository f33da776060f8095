"""An array of ingests into one lake, a process for each trace: one is killed, and the array runs again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tracedb
from support.command import run
from support.loading import trace

RANKS = range(3)
KILLED_RANK = 1
DYING = """
import os, signal, sys
from tracedb.storage import lake_store
put, left = lake_store.Store.put, int(sys.argv[1])
def put_or_die(self, *given):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    put(self, *given)
lake_store.Store.put = put_or_die
from tracedb.cli.main import cli
cli(sys.argv[2:])
"""
"""tracedb, killed before it puts the N-th file into the lake; 0: never."""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_an_array_with_a_killed_process_is_run_again(tmp_path: Path) -> None:
    lake, traces = tmp_path / "lake", [trace(tmp_path / f"rank{rank}.json", 4 + rank, rank) for rank in RANKS]
    commands = [["ingest", str(path), "--lake", str(lake), "--jobs", "1"] for path in traces]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", DYING, "3" if rank == KILLED_RANK else "0", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank, command in enumerate(commands)
    ]
    assert [process.wait() for process in running] == [0, -signal.SIGKILL, 0]
    assert states(lake) == ["unused_file", "unused_file"]  # those that it had written
    assert kernels(lake) == {0: 4, 2: 6}

    said = [run(*command).stderr for command in commands]
    assert ["1 known before" in text for text in said] == [True, False, True]
    assert states(lake) == []
    assert kernels(lake) == {0: 4, 1: 5, 2: 6}
    with tracedb.connect(lake) as connection:
        (in_files,) = connection.execute(f"SELECT count(*) FROM '{lake}/kernel_event/*/*.parquet'").fetchone() or (0,)
    assert in_files == 4 + 5 + 6


def states(lake: Path) -> list[str]:
    done = run("lake", "verify", lake, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return [row["state"] for row in json.loads(done.stdout)["rows"] if row["state"] != "unaligned_run"]


def kernels(lake: Path) -> dict[int, int]:
    """Return the number of kernels of each rank, all of different numbers."""
    with tracedb.connect(lake) as connection:
        rows = connection.execute(
            """SELECT c.rank, count(*), count(DISTINCT e.event_id) FROM capture AS c
            INNER JOIN kernel_event AS e ON e.capture_id = c.capture_id GROUP BY c.rank"""
        ).fetchall()
    assert all(events == different for _, events, different in rows)
    return {rank: events for rank, events, _ in rows}
