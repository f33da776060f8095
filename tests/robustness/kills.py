"""Kill an ingest at points spread over its whole run, and check what is left.

    python tests/robustness/kills.py --seed 13 --kills 120
    python tests/robustness/kills.py --seed 13 --kills 120 --jobs 2     # workers and their parent: worker_kills.py
    python tests/robustness/kills.py --seed 13 --kills 60 --merge       # tracedb merge: merge_kills.py
    python tests/robustness/kills.py --seed 13 --kills 20 --lake        # commands on one lake: lake_kills.py
    python tests/robustness/kills.py --seed 13 --kills 20 --at-once     # on one database: database_kills.py

Each trial is a real process killed with SIGKILL: at a named point (a function of tracedb is replaced in that process
by one that kills it at its Nth call), or after a random fraction of the time that an undisturbed run takes. After each:

- the file does not exist, or it opens; each capture in it has all rows of an undisturbed run, in every table, and its
  counts add up; everything that the killed process had reported is there;
- a report works, and warns about facts still to be derived;
- the same ingest again exits with code 0 and gives the rows of an undisturbed run, including clock_alignment;
- nothing else is left beside the database.

Prints a table of outcomes, and exits with code 1 if a trial failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import duckdb
from click.testing import CliRunner

from tracedb.cli.main import cli
from tracedb.storage import views

TRACES = Path(__file__).resolve().parents[2] / "examples" / "run" / "sweep_sample" / "256thread" / "nccl_4channels"
Found = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A call at which the process ends: of ``module.function``, before or after it, the ``nth`` time at most."""

    function: str
    is_after: bool = False
    most: int = 1

    def arm(self, nth: int, end: Callable[[], None] | None = None) -> None:
        """Replace the function in this process; ``end``: called instead of ending this process."""
        end = end or _end
        module, _, path = self.function.partition(":")
        owner = importlib.import_module(module)
        *outer, name = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        original = getattr(owner, name)
        calls = 0

        def replaced(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == nth and not self.is_after:
                end()
            result = original(*given, **named)
            if calls == nth:
                end()
            return result

        setattr(owner, name, replaced)


POINTS = {
    "before the file appears": Point("tracedb.storage.template_database:_link"),
    "after the file appeared": Point("tracedb.storage.template_database:place", is_after=True),
    "file attached": Point("tracedb.storage.connection:_attach", is_after=True, most=2),
    "tables and views looked at": Point("tracedb.pipeline.batch_load:prepare", is_after=True),
    "views being installed": Point("tracedb.storage.views:_create_views", is_after=True),
    "views installed": Point("tracedb.storage.views:install", is_after=True),
    "rows being written": Point("tracedb.pipeline.writer:Writer._insert", is_after=True, most=20),
    "capture row written": Point("tracedb.derive.run:finish", most=4),
    "capture derived": Point("tracedb.derive.run:finish", is_after=True, most=4),
    "captures committed": Point("tracedb.pipeline.capture_load:Job.add_to", is_after=True, most=4),
    "before the log is moved": Point("tracedb.storage.connection:_detach", most=2),
    "after the log was moved": Point("tracedb.storage.connection:_detach", is_after=True, most=2),
    "before clocks are aligned": Point("tracedb.derive.clock_alignment:align_file"),
    "clocks being aligned": Point("tracedb.derive.clock_alignment:_run", is_after=True, most=4),
    "clocks aligned, not committed": Point("tracedb.derive.clock_alignment:align", is_after=True),
    "after clocks are aligned": Point("tracedb.derive.clock_alignment:align_file", is_after=True),
    "before the account": Point("tracedb.cli.ingest:_account"),
    "after the account": Point("tracedb.cli.ingest:_close"),
}
SCENARIOS = ("new file", "file with a capture and older views")


@dataclass
class Trial:
    """One kill: where, and what was found after it."""

    scenario: str
    where: str
    nth: int = 1
    after_seconds: float | None = None
    state: str = ""
    faults: list[str] = field(default_factory=list)


def _end() -> None:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def forked(work: Callable[[], Any], seconds: float | None = None) -> tuple[bool, Any]:
    """Run ``work`` in a process of its own; returns whether it was killed, and what it returned (as JSON) if not.

    It shares what is imported, which would take longer than the rest. ``seconds``: after which it is killed.
    """
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        code = 1
        try:
            with os.fdopen(write, "w") as pipe:
                pipe.write(json.dumps(work()))
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return True, None
    return False, json.loads(said) if said else None


def run(*arguments: str | Path, told: Path | None = None, said: Path = Path(os.devnull)) -> Found:
    """Run a command in this process; ``told``: file for its stdout; ``said``: then that for its stderr."""
    if told is None:
        done = CliRunner().invoke(cli, [str(item) for item in arguments])
        return {"code": done.exit_code, "said": done.stderr}
    number = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(number, 1)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    try:
        cli([str(item) for item in arguments])
    except SystemExit as ended:
        sys.stdout.flush()
        return {"code": ended.code}
    return {"code": 0}


def contents(db: Path) -> Found:
    """Return path of a capture → table → count and hash of its rows, whatever number it has."""
    rows: Found = {}
    with duckdb.connect(str(db), read_only=True) as connection:
        tables = connection.execute(
            """SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()
               WHERE schema_name = 'main' AND table_name IN (SELECT table_name FROM duckdb_tables())
               GROUP BY table_name HAVING list_contains(list(column_name), 'capture_id')"""
        ).fetchall()
        for table, columns in tables:
            named = [f"t.{name}" for name in columns if name not in ("capture_id", "ingested_at")]
            if "reference_capture_id" in columns:
                named.remove("t.reference_capture_id")
                named.append("(SELECT o.path FROM main.capture AS o WHERE o.capture_id = t.reference_capture_id)")
            found = connection.execute(
                f"""SELECT x.path, count(*), sum(hash(x.r))::VARCHAR
                    FROM (SELECT c.path, row({", ".join(named)}) AS r FROM main.{table} AS t
                          INNER JOIN main.capture AS c ON c.capture_id = t.capture_id) AS x GROUP BY x.path"""
            ).fetchall()
            for path, count, digest in found:
                rows.setdefault(path, {})[table] = [count, digest]
    return rows


def looked_at(db: Path, is_whole: bool = False) -> Found:
    """Open what a killed process left; ``is_whole``: what the ingest after it made of that, without a report."""
    if not db.exists():
        return {"state": "no file", "rows": {}}
    with duckdb.connect(str(db), read_only=True) as connection:
        ((captures, unbalanced),) = connection.execute(
            """SELECT count(*), count(*) FILTER (events_read <> rows_written + events_skipped) FROM main.capture"""
        ).fetchall()
        ((due,),) = connection.execute("SELECT count(*) FROM meta.owed").fetchall()
        is_outdated = bool(views.outdated(connection))
    report: Found = {"code": 0, "said": ""} if is_whole else run("report", "stragglers", "--db", db)
    return {
        "state": f"{captures} captures" + (", owing" if due else ""),
        "rows": contents(db),
        "unbalanced": unbalanced,
        "report": report["code"],
        "is_warned": "is not worked out yet" in report["said"],
        "is_owing": bool(due),
        "is_outdated": is_outdated,
    }


def make_views_older(db: Path) -> None:
    with duckdb.connect(str(db)) as connection:
        connection.execute("UPDATE meta.view_version SET sha256 = 'older' WHERE name = 'top_kernels'")


class Explorer:
    """Kills ingests of one folder, in a folder of its own."""

    def __init__(self, folder: Path, traces: Path = TRACES) -> None:
        self._folder = folder
        self._traces = traces

    @cached_property
    def _old(self) -> Path:
        """A database with one capture."""
        old = self._folder / "old.duckdb"
        other = next(path for path in sorted(TRACES.parent.rglob("*.json.gz")) if TRACES not in path.parents)
        forked(lambda: run("ingest", other, "--db", old))
        return old

    @cache  # noqa: B019 - there is one explorer in a process
    def _whole(self, scenario: str) -> Found:
        """Return the rows of an undisturbed ingest. The views of the file are current: they add no rows."""
        with self._started(scenario, is_outdated=False) as db:
            self._undisturbed(db)
            _, whole = forked(lambda: contents(db))
        return dict(whole)

    @cache  # noqa: B019 - as above
    def _seconds(self, scenario: str) -> float:
        """Return how long an undisturbed ingest takes."""
        with self._started(scenario) as db:
            began = time.monotonic()
            self._undisturbed(db)
            return time.monotonic() - began

    def _undisturbed(self, db: Path) -> None:
        _, ended = forked(lambda: run("ingest", self._traces, "--db", db, "--jobs", "1"))
        if ended is None or ended["code"] != 0:
            raise SystemExit(f"an undisturbed ingest failed: {ended}")

    @contextmanager
    def _started(self, scenario: str, is_outdated: bool = True) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._folder) as made:
            db = Path(made) / "run.duckdb"
            if scenario != SCENARIOS[0]:
                shutil.copyfile(self._old, db)
                if is_outdated:
                    forked(lambda: make_views_older(db))
            yield db

    def at_point(self, scenario: str, name: str, nth: int) -> Trial | None:
        """Kill at a named point; None where the run does not come to it."""
        trial = Trial(scenario, name, nth)

        def work(db: Path, told: Path) -> Found:
            POINTS[name].arm(nth)
            return run("ingest", self._traces, "--db", db, "--jobs", "1", "--format", "json", told=told)

        return self._tried(trial, work)

    def after(self, scenario: str, share: float) -> Trial | None:
        """Kill after a share of the time that the whole takes."""
        trial = Trial(scenario, "at a random time", after_seconds=share * self._seconds(scenario))
        return self._tried(
            trial,
            lambda db, told: run("ingest", self._traces, "--db", db, "--jobs", "1", "--format", "json", told=told),
        )

    def _tried(self, trial: Trial, work: Callable[[Path, Path], Found]) -> Trial | None:
        with self._started(trial.scenario) as db:
            told = db.with_name("told")
            was_killed, _ = forked(lambda: work(db, told), trial.after_seconds)
            if not was_killed:
                return None
            rows = json.loads(told.read_text())["rows"] if told.exists() and told.stat().st_size else []
            told.unlink(missing_ok=True)
            _, left = forked(lambda: looked_at(db))
            _, again = forked(lambda: run("ingest", self._traces, "--db", db, "--jobs", "1"))
            _, whole = forked(lambda: looked_at(db, is_whole=True))
            beside = sorted(path.name for path in db.parent.iterdir() if path != db)
        trial.faults = list(self._faults(trial.scenario, left, again, whole, rows))
        if beside:
            trial.faults.append(f"left beside the database: {beside}")
        trial.state = left["state"] if left else "cannot be opened"
        return trial

    def _faults(
        self, scenario: str, left: Found | None, again: Found | None, whole: Found | None, told: list[Found]
    ) -> Iterator[str]:
        wanted = self._whole(scenario)
        if left is None:
            yield "the file cannot be opened"
            return
        for path, tables in left["rows"].items():
            for table in wanted[path].keys() | tables.keys():
                if table != "clock_alignment" and tables.get(table) != wanted[path].get(table):
                    yield f"half a capture: {table} of {path}: {tables.get(table)}, not {wanted[path].get(table)}"
        missing = {row["path"] for row in told if row["capture_id"]} - left["rows"].keys()
        if missing:
            yield f"told as loaded and not there: {missing}"
        if left.get("unbalanced"):
            yield "an account is not balanced"
        if left.get("report", 0) not in (0, 3):
            yield f"a report ended with {left['report']}"
        if left.get("is_owing") and not left["is_warned"]:
            yield "a report does not warn of what is owed"
        if again is None or again["code"] != 0:
            yield f"the ingest after it failed: {again}"
        if whole is None or whole["rows"] != wanted:
            yield "the ingest after it gives other rows than an undisturbed one"
        elif whole["is_owing"] or whole["is_outdated"]:
            yield "the ingest after it leaves something undone"


def explored(seed: int, kills: int, folder: Path) -> list[Trial]:
    """Kill so many times: each named point in turn, every other time at a random one of its calls or moments."""
    dice = random.Random(seed)
    explorer = Explorer(folder)
    trials: list[Trial] = []
    names = list(POINTS)
    for number in range(3 * kills):
        if len(trials) >= kills:
            break
        scenario = SCENARIOS[(number // 2 + number // 2 // len(names)) % 2]  # each point meets each scenario
        if number % 2:
            trial = explorer.after(scenario, dice.random())
        else:
            name = names[number // 2 % len(names)]
            trial = explorer.at_point(scenario, name, dice.randint(1, POINTS[name].most))
        if trial is not None:
            trials.append(trial)
            print(f"{len(trials)}: {trial}", file=sys.stderr)
    return trials


def at_points(names: list[str], folder: Path) -> list[Trial]:
    """Kill once at each of the named points, in one scenario and the other in turn."""
    explorer = Explorer(folder)
    trials = []
    for place, name in enumerate(names):
        trial = explorer.at_point(SCENARIOS[place % 2], name, 1)
        if trial is None:
            raise SystemExit(f"an ingest does not come to the point {name!r}")
        trials.append(trial)
    return trials


def table(trials: list[Trial]) -> str:
    """Return the outcomes as a table in Markdown."""
    counts = Counter((trial.where, trial.state, not trial.faults) for trial in trials)
    lines = ["| killed | left | kills | sound |", "|---|---|---|---|"]
    for where in dict.fromkeys([*POINTS, *sorted(trial.where for trial in trials)]):
        for state in sorted({trial.state for trial in trials if trial.where == where}):
            good, bad = counts[where, state, True], counts[where, state, False]
            lines.append(f"| {where} | {state} | {good + bad} | {good} |")
    return "\n".join(lines)


def _trials(given: argparse.Namespace, folder: Path) -> list[Trial]:
    if given.merge:
        sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
        from robustness import merge_kills

        if given.at:
            return merge_kills.at_points(given.at, folder)
        return merge_kills.explored(given.seed, given.kills, folder)
    if given.lake or given.at_once:
        sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
        from robustness import database_kills, lake_kills

        explore = lake_kills.explored if given.lake else database_kills.explored
        return explore(given.seed, given.kills, folder)
    if given.jobs > 1:
        sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
        from robustness import worker_kills

        if given.at:
            return worker_kills.at_points(given.at, folder, given.jobs)
        return worker_kills.explored(given.seed, given.kills, folder, given.jobs)
    return at_points(given.at, folder) if given.at else explored(given.seed, given.kills, folder)


def main() -> None:
    """Explore, and print what came of it."""
    parser = argparse.ArgumentParser(description="Kill ingests and look at what is left.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--at", action="append", help="kill at these points only, once each")
    parser.add_argument("--merge", action="store_true", help="kill merges instead of ingests")
    parser.add_argument("--lake", action="store_true", help="kill processes that use one lake at once")
    parser.add_argument("--at-once", action="store_true", help="kill processes that use one database at once")
    parser.add_argument("--jobs", type=int, default=1, help="workers; with more than one, these and their parent die")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracedb-kills-") as folder:
        used = Path(os.environ.get("XDG_CACHE_HOME", folder), "tracedb")
        os.environ["XDG_CACHE_HOME"] = folder + "/cache"
        for template in used.glob("empty-*.duckdb"):  # making one takes longer than a trial
            (Path(folder) / "cache" / "tracedb").mkdir(parents=True, exist_ok=True)
            shutil.copy(template, Path(folder) / "cache" / "tracedb")
        made_in = Path(folder)
        trials = _trials(given, made_in)
    print(table(trials))
    faulty = [trial for trial in trials if trial.faults]
    for trial in faulty:
        print(trial)
    print(f"{len(trials)} kills, {len(faulty)} faulty; seed {given.seed}")
    sys.exit(1 if faulty else 0)


if __name__ == "__main__":
    main()
