"""Worker processes that neither go on nor end: they are named, and Ctrl-C ends the ingest all the same."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.loading import trace
from support.processes import below, wait_for

HANGING = "import os, signal; from {} import main; os.kill(os.getpid(), signal.SIGSTOP); main()"
IMPATIENT = f"""
import sys
from tracedb.cli.main import cli
from tracedb.pipeline import worker_pool
worker_pool.QUIET_START = {HANGING!r}
worker_pool.SILENT_SECONDS = 0.1
worker_pool.STOP_SECONDS = float(sys.argv[1])
cli(sys.argv[2:])
"""
LONG = 3600.0

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells by /proc what is stopped")


def stopped(pid: int) -> int | None:
    """Return how many workers have stopped, once both have."""
    found = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] for child in below(pid)]
    return 2 if found == ["T", "T"] else None


def started(folder: Path, stop_seconds: float) -> subprocess.Popen[str]:
    traces = [str(trace(folder / f"rank{rank}.json", 4 + rank, rank)) for rank in range(2)]
    words = [str(stop_seconds), "ingest", *traces, "--db", str(folder / "db"), "--jobs", "2"]
    child = subprocess.Popen([sys.executable, "-c", IMPATIENT, *words], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: stopped(child.pid))
    return child


def test_workers_that_hang_are_named_and_killed_after_ctrl_c(tmp_path: Path) -> None:
    with started(tmp_path, 0.1) as child:
        assert child.stderr is not None
        named = sorted(child.stderr.readline() for _ in range(2))
        workers = list(below(child.pid))
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert child.stderr.read().strip() == "tracedb: error: interrupted"
    said = (
        r"process (\d+), which loads it, has reported nothing for 0\.1 s; if it hangs, kill it, and the ingest goes on"
    )
    found = [re.match(rf"tracedb: {tmp_path}/rank{rank}\.json: {said}", line) for rank, line in enumerate(named)]
    assert {int(match[1]) for match in found if match} == set(workers)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank0.json", "rank1.json"]


def test_a_second_ctrl_c_kills_at_once(tmp_path: Path) -> None:
    with started(tmp_path, LONG) as child:
        child.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130


def test_the_ingest_goes_on_without_a_hanging_worker_that_was_killed(tmp_path: Path) -> None:
    with started(tmp_path, LONG) as child:
        for worker in below(child.pid):
            os.kill(worker, signal.SIGKILL)
        _, stderr = child.communicate(timeout=60)
    assert child.returncode == 1
    assert stderr.count("the worker process reading it died (exit status -9; out of memory?); try --jobs 1") == 2
