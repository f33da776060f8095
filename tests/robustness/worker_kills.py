"""Kills of worker processes, and of the process that started them, for ``kills.py --jobs N``.

A worker or its parent is killed at a random moment after the first worker started, or when a worker first reaches a
named point. Once all processes have ended, the checks of ``kills.py`` must pass. If a worker was killed, the ingest
must also have continued: each file is listed once, either as loaded with the numbers of its capture, or as failed and
not in the database; the exit code is 1 if a file failed, else 0.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from robustness.kills import POINTS, SCENARIOS, TRACES, Explorer, Found, Trial, forked, looked_at, run  # noqa: E402
from support.traces import launched, write  # noqa: E402
from tracedb.pipeline import worker_pool  # noqa: E402

VICTIMS = ("worker", "parent")
OF_WORKERS = tuple(name for name in POINTS if "clocks" not in name and "account" not in name)
"""The points that a worker comes to."""
SMALL_FILES = 8
MOST_SECONDS = 60.0
ARMED = (
    "import sys; sys.path[:0] = [{!r}]; from robustness import worker_kills; worker_kills.serve({!r}, {!r}, {}, {!r})"
)


def serve(victim: str, name: str, nth: int, token: str) -> None:
    """Be a worker that kills itself or its parent at a point, unless another one, which took the token, has done so."""
    from tracedb.pipeline import worker_process

    def end() -> None:
        with suppress(FileNotFoundError):
            Path(token).unlink()
            os.kill(os.getpid() if victim == VICTIMS[0] else os.getppid(), signal.SIGKILL)

    POINTS[name].arm(nth, end)
    worker_process.main()


def living(pid: int) -> list[int]:
    """Return the processes that a process has started and that have not ended."""
    found: list[int] = []
    for path in (Path("/proc") / str(pid) / "task").glob("*/children"):
        with suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return [child for child in found if lives(child)]


def lives(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def made(folder: Path) -> Path:
    """Make a folder of the four ranks of a recorded run and of small traces, which a worker gets several of."""
    traces = folder / "traces"
    shutil.copytree(TRACES, traces)
    for number in range(SMALL_FILES):
        write(traces / f"small{number}.json", launched(20 + number, first=1 + 100 * number, pid=4000 + number))
    return traces


class WorkerExplorer(Explorer):
    """Kills ingests with ``jobs`` workers."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        os.environ["TMPDIR"] = str(self._temporary)
        self._jobs = jobs
        super().__init__(folder, made(folder))
        self._files = SMALL_FILES + len(list(TRACES.rglob("*.json.gz")))
        with self._started(SCENARIOS[0]) as db:
            pid = self._ingest(db, None)
            self._first_worker(pid)
            began = time.monotonic()
            os.waitpid(pid, 0)
            self._span = time.monotonic() - began

    def _ingest(self, db: Path, program: str | None) -> int:
        """Begin an ingest in a process of its own; ``program``: what its workers run."""
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            if program is not None:
                worker_pool.QUIET_START = program.replace("{", "{{").replace("}", "}}")
            options = ("--jobs", str(self._jobs), "--format", "json")
            told, said = self._folder / "told", self._folder / "said"
            code = int(run("ingest", self._traces, "--db", db, *options, told=told, said=said)["code"])
        finally:
            os._exit(code)

    @staticmethod
    def _first_worker(pid: int) -> list[int]:
        ends = time.monotonic() + MOST_SECONDS
        while not (workers := living(pid)) and lives(pid) and time.monotonic() < ends:
            time.sleep(0.01)
        return workers

    def at_random(self, scenario: str, victim: str, dice: random.Random) -> Trial | None:
        """Kill at a random moment; None where everything had ended by then."""
        trial = Trial(scenario, f"{victim}, at a random time", after_seconds=dice.random() * self._span)
        with self._started(scenario) as db:
            pid = self._ingest(db, None)
            workers = set(self._first_worker(pid))
            time.sleep(trial.after_seconds or 0)
            workers.update(living(pid))
            alive = sorted(worker for worker in workers if lives(worker))
            if alive and lives(pid):
                os.kill(dice.choice(alive) if victim == VICTIMS[0] else pid, signal.SIGKILL)
            return self._judged(trial, victim, db, pid, workers) if alive else self._over(pid)

    def at_worker_point(self, scenario: str, victim: str, name: str, nth: int) -> Trial | None:
        """Kill when a worker comes to a point; None where none does."""
        trial = Trial(scenario, f"{victim}, when a worker is at: {name}", nth)
        token = self._folder / "token"
        token.touch()
        with self._started(scenario) as db:
            pid = self._ingest(db, ARMED.format(str(TESTS), victim, name, nth, str(token)))
            workers: set[int] = set()
            while lives(pid):
                workers.update(living(pid))
                time.sleep(0.02)
            return self._over(pid) if token.exists() else self._judged(trial, victim, db, pid, workers)

    @staticmethod
    def _over(pid: int) -> None:
        os.waitpid(pid, 0)

    def _judged(self, trial: Trial, victim: str, db: Path, pid: int, workers: set[int]) -> Trial:
        """Wait for the end of all processes, and look at what is left."""
        _, status = os.waitpid(pid, 0)
        ends = time.monotonic() + MOST_SECONDS
        while (orphans := [worker for worker in workers if lives(worker)]) and time.monotonic() < ends:
            time.sleep(0.05)
        if orphans:
            trial.faults.append(f"workers still run: {orphans}")
        told, said = ((self._folder / name).read_text() for name in ("told", "said"))
        rows = json.loads(told)["rows"] if told else []
        _, left = forked(lambda: looked_at(db))
        if victim == VICTIMS[0]:
            trial.faults += self._account_faults(db, rows, status, said)
        _, again = forked(lambda: run("ingest", self._traces, "--db", db, "--jobs", "1"))
        _, whole = forked(lambda: looked_at(db, is_whole=True))
        trial.faults += self._faults(trial.scenario, left, again, whole, rows)
        beside = [path.name for path in (*db.parent.iterdir(), *self._temporary.iterdir()) if path != db]
        if beside:
            trial.faults.append(f"left beside the database or for temporary files: {sorted(beside)}")
        trial.state = left["state"] if left else "cannot be opened"
        return trial

    def _account_faults(self, db: Path, rows: list[Found], status: int, said: str) -> Iterator[str]:
        """Compare what an ingest printed with what it left."""
        failed = [row["path"] for row in rows if row["status"] == "failed"]
        if status != (256 if failed else 0):
            yield f"exit status {status} with {len(failed)} failed files"
        if len({row["path"] for row in rows}) != self._files or len(rows) != self._files:
            yield f"{len(rows)} rows in the account of {self._files} files"
        names = ("capture_id", "path", "status", "kernels", "events_read", "rows_written", "events_skipped")
        told = [tuple(row[name] for name in names) for row in rows if row["status"] != "failed"]
        if set(told) != set(held := _held(db, self._traces)):
            yield f"the account says {told}, the database holds {held}"
        if "Traceback" in said or "Exception ignored" in said:
            yield f"raw words: {said[-500:]}"


def _held(db: Path, traces: Path) -> list[tuple[Any, ...]]:
    """Return what an account would say of the captures of a folder that a database holds."""
    if not db.exists():
        return []
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.execute(
            """SELECT capture_id, path, status,
                      (SELECT count(*) FROM main.kernel_event AS k
                       WHERE k.capture_id = c.capture_id AND k.kind = 'kernel'),
                      events_read, rows_written, events_skipped
               FROM main.capture AS c WHERE starts_with(path, ?)""",
            [str(traces)],
        ).fetchall()


def explored(seed: int, kills: int, folder: Path, jobs: int) -> list[Trial]:
    """Kill so many times, workers and parents in turn: two of three at random moments, others at points."""
    dice = random.Random(seed)
    explorer = WorkerExplorer(folder, jobs)
    trials: list[Trial] = []
    for number in range(3 * kills):
        if len(trials) >= kills:
            break
        scenario, victim = dice.choice(SCENARIOS), VICTIMS[number % 2]
        if number % 3:
            trial = explorer.at_random(scenario, victim, dice)
        else:
            name = dice.choice(OF_WORKERS)
            trial = explorer.at_worker_point(scenario, victim, name, dice.randint(1, min(POINTS[name].most, 4)))
        if trial is not None:
            trials.append(trial)
            print(f"{len(trials)}: {trial}", file=sys.stderr, flush=True)
    return trials


def at_points(names: list[str], folder: Path, jobs: int) -> list[Trial]:
    """Kill a worker, and its parent, once at each of the named points."""
    explorer = WorkerExplorer(folder, jobs)
    trials = []
    for place, name in enumerate(names):
        for victim in VICTIMS:
            trial = explorer.at_worker_point(SCENARIOS[place % 2], victim, name, 1)
            if trial is None:
                raise SystemExit(f"no worker comes to the point {name!r}")
            trials.append(trial)
    return trials
