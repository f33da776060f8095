"""Several files at once: the same rows, workers that die, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from support.loading import ask, contents, ingest, trace
from support.processes import below, reader_of, wait_for
from support.traces import document, launched, write
from tracedb.pipeline import worker_pool


@cache
def long_content() -> bytes:
    head, _, tail = document(launched(10_000), "compact").partition(b'"traceEvents":[')
    return head + b'"traceEvents":[' + b",".join([tail.rpartition(b"]")[0]] * 10) + b"]}"


def long_trace(path: Path, blanks: int = 0) -> Path:
    """A trace that takes a few seconds to read; ``blanks``, of the file's end, give it bytes of its own."""
    return write(path, long_content() + b"\n" * blanks)


def background(*paths: Path, db: Path, jobs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tracedb", "ingest", *map(str, paths), "--db", str(db), "--jobs", str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


class TestJobs:
    def test_two_processes_give_the_same_rows(self, tmp_path: Path) -> None:
        for rank in range(4):
            trace(tmp_path / "in" / f"rank{rank}" / "x.json.gz", 50 + 13 * rank, rank)
        write(tmp_path / "in" / "merged.json", [*launched(3, pid=1, device=0), *launched(3, pid=2, device=1)])
        for jobs in (1, 2):
            assert ingest(tmp_path / "in", db=tmp_path / f"{jobs}.duckdb", jobs=jobs).exit_code == 0
        assert contents(tmp_path / "1.duckdb") == contents(tmp_path / "2.duckdb")
        ids = ask(tmp_path / "2.duckdb", "SELECT capture_id, rank FROM capture ORDER BY capture_id")
        assert ids == [(1, None), (2, 0), (3, 1), (4, 2), (5, 3), (6, None)]

    def test_a_killed_worker_costs_its_file_only(self, tmp_path: Path) -> None:
        small = [trace(tmp_path / "in" / f"small{i}.json", 5 + i) for i in range(3)]
        large = long_trace(tmp_path / "in" / "large.json")
        with background(tmp_path / "in", db=tmp_path / "db", jobs=2) as child:
            # The parent has it open for a moment too, to recognise it.
            worker = wait_for(lambda: reader if (reader := reader_of(child.pid, large)) != child.pid else None)
            os.kill(worker, signal.SIGKILL)
            _, stderr = child.communicate(timeout=600)
        assert child.returncode == 1
        assert f"tracedb: error: {large}: the worker process reading it died (exit status -9" in stderr
        paths = {path for (path,) in ask(tmp_path / "db", "SELECT path FROM capture")}
        assert paths == {str(path) for path in small}

    def test_workers_that_do_not_start_are_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = [trace(tmp_path / f"{name}.json", ord(name)) for name in "abc"]
        for program in ("/bin/false", "/does/not/exist"):
            monkeypatch.setattr("tracedb.pipeline.worker_pool.sys.executable", program)
            done = ingest(*paths, db=tmp_path / "db", jobs=2)
            assert done.exit_code == 1
            assert all(f"tracedb: error: {path}: " in done.stderr for path in paths)
            assert done.stderr.count("try --jobs 1") == 3

    def test_what_a_worker_prints_is_no_message(self, tmp_path: Path) -> None:
        """Neither below Python nor by DuckDB, which draws a progress bar where it takes a program for a prompt."""
        (tmp_path / "probe.py").write_text(
            "import os, duckdb\n"
            "from tracedb.pipeline import worker_process as workers\n"
            "def main():\n"
            "    out = workers._own_stdout()\n"
            "    os.write(1, b'noise')\n"
            "    print('more noise')\n"
            "    bar = duckdb.connect().sql(\"SELECT current_setting('enable_progress_bar')\").fetchall()\n"
            "    print(bar, file=out, flush=True)\n"
        )
        command = [sys.executable, "-c", worker_pool.QUIET_START.format("probe")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert done.stdout == "[(False,)]\n"
        assert "noise" in done.stderr and "more noise" in done.stderr

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_ctrl_c_leaves_a_sound_file(self, tmp_path: Path, jobs: int) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "before.json"), db=db)
        before = contents(db)
        for blanks, name in enumerate("ba"):  # the larger one is read first
            long_trace(tmp_path / "in" / f"{name}.json", blanks)
        with background(tmp_path / "in", db=db, jobs=jobs) as child:
            wait_for(lambda: reader_of(child.pid, tmp_path / "in" / "a.json"))
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does
            _, stderr = child.communicate(timeout=600)
        # Python may end itself by the signal: 130 in a shell.
        assert child.returncode in worker_pool.INTERRUPTED, stderr
        assert stderr.splitlines()[-1] == "tracedb: error: interrupted"
        # Python reports an interrupt that comes while it cleans up, and goes on; the second, of the parent, is heeded.
        assert stderr.count("Traceback") == stderr.count("Exception ignored")
        assert contents(db) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["before.json", "db", "in"]

    def test_ctrl_c_before_there_is_a_file(self, tmp_path: Path) -> None:
        for blanks, name in enumerate("ba"):  # the larger one is read first
            long_trace(tmp_path / "in" / f"{name}.json", blanks)
        with background(tmp_path / "in", db=tmp_path / "db", jobs=2) as child:
            wait_for(lambda: reader_of(child.pid, tmp_path / "in" / "a.json"))
            child.send_signal(signal.SIGINT)
            _, stderr = child.communicate(timeout=600)
        # Python may end itself by the signal: 130 in a shell.
        assert child.returncode in worker_pool.INTERRUPTED, stderr
        assert stderr.splitlines()[-1] == "tracedb: error: interrupted"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]

    def test_an_interrupt_that_python_drops_is_heeded(self, tmp_path: Path) -> None:
        """As an exception raised in a destructor is dropped; nothing that was read since then is written."""
        for name in "ab":
            trace(tmp_path / "in" / f"{name}.json", ord(name))
        script = (
            "import signal, sys\n"
            "from tracedb.pipeline import batch_load\n"
            "from tracedb.cli.main import main\n"
            "class Interrupt:\n"
            "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
            "write = batch_load._write\n"
            "def interrupted(*given):\n"
            "    Interrupt()\n"
            "    write(*given)\n"
            "batch_load._write = interrupted\n"
            "main()\n"
        )
        command = [sys.executable, "-c", script, "ingest", str(tmp_path / "in"), "--db", str(tmp_path / "db")]
        done = subprocess.run([*command, "--jobs", "1"], capture_output=True, text=True, check=False)
        assert "Exception ignored" in done.stderr
        assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "tracedb: error: interrupted")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_interrupted_nothing_more_is_begun(tmp_path: Path) -> None:
    """The captures that a stopped worker leaves are not tried singly, by workers that nobody stops."""
    for rank in range(150):
        write(tmp_path / "in" / f"rank{rank}.json", launched(60, first=1 + rank, pid=4000 + rank))
    child = background(tmp_path / "in", db=tmp_path / "db", jobs=2)
    while not (busy := list(below(child.pid))) and child.poll() is None:
        time.sleep(0.02)
    time.sleep(0.5)
    os.killpg(child.pid, signal.SIGINT)
    begun = set(busy)
    while child.poll() is None:
        begun |= set(below(child.pid))
        time.sleep(0.01)
    _, stderr = child.communicate()
    assert child.returncode in worker_pool.INTERRUPTED
    assert stderr.splitlines()[-1] == "tracedb: error: interrupted"
    assert len(begun) <= 2
    assert "JSONDecodeError" not in stderr
