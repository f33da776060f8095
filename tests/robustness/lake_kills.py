"""Kills of commands that use one lake at once, for ``kills.py --lake``.

In each trial, tasks of an array load traces into one lake, each in a process of its own, some of them twice, while
other processes export a database into it, align, compact and verify it. Most are killed with SIGKILL, at random moments
or at random ones of their calls of the lake.
After each of one to three such rounds

- the lake can be read, no entry or file is damaged, and every capture in it has all rows of an undisturbed lake;
- commands that were not killed have succeeded, or said in one line what was in the way, and to try again.

Then the array runs again undisturbed, the database is exported and the runs are aligned. After that

- ``lake verify --remove-unused`` and then ``lake verify`` find no fault, and nothing that is left over;
- the lake has exactly the files that its manifest names, the rows of an undisturbed lake, and each capture once;
- views give the rows that they give over a database of the same traces;
- nothing is left in the folder for temporary files.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

import tracedb  # noqa: E402
from robustness.at_once import Ended, at_once, planned  # noqa: E402
from robustness.kills import TRACES, Found, Point, Trial, forked, run  # noqa: E402
from support import lake_comparison  # noqa: E402
from tracedb.lake import verify  # noqa: E402
from tracedb.storage import lake_manifest, lake_tables  # noqa: E402
from tracedb.storage.lake_store import HIDDEN, MARK, Store  # noqa: E402

VIEWS = (
    *("v1.top_kernels", "v1.stragglers", "v1.collectives", "v1.gpu_timeline", "v1.gemm_variance"),
    *("v1.unique_kernels", "v1.collective_overlap", "v1.matmul_fraction", "v1.launch_latency"),
)
ASKED = 2
"""Views asked in each trial: all of them take longer than the rest."""
ROUNDS = 3
SLOWER = 3
"""How much longer a command takes beside the others than alone, about."""
STORE = "tracedb.storage.lake_store"
POINTS = [
    Point(function, is_after, most)
    for function, most in {
        f"{STORE}:os.fsync": 16,
        f"{STORE}:Store.put": 16,
        f"{STORE}:Store.write": 4,
        f"{STORE}:Store.hide": 8,
        f"{STORE}:Store.remove": 8,
        f"{STORE}:Store.size": 16,
        f"{STORE}:Store.names": 6,
        "tracedb.storage.lake_manifest:write_entry": 3,
        "tracedb.storage.lake_manifest:read": 4,
    }.items()
    for is_after in (False, True)
]
"""Calls at which every other process that is killed dies, instead of at a random moment."""
TRY_AGAIN = ("another process", "other processes")
"""A command that others get in the way of ends with one of these."""
FAULTS = tuple(state for state in verify.FAULTS if state != "missing_file")
"""A process that is killed while it removes unused files can leave one hidden that was entered in that moment, which
loading the trace again repairs."""


def contents(lake: Path) -> Found:
    """Return path of a capture → table → count and hash of its rows."""
    rows: Found = {}
    with tracedb.connect(lake) as connection:
        for table, columns in lake_tables.declared().items():
            if "capture_id" not in columns:
                continue
            named = ", ".join(f"t.{name}" for name in columns if name != "ingested_at")
            found = connection.execute(
                f"""SELECT c.path, count(*), sum(hash(row({named})))::VARCHAR FROM main.{table} AS t
                    INNER JOIN main.capture AS c ON c.capture_id = t.capture_id GROUP BY c.path"""
            ).fetchall()
            for path, count, digest in found:
                rows.setdefault(path, {})[table] = [count, digest]
    return rows


def looked_at(lake: Path) -> Found:
    """Return what a lake holds, and the states of what ``lake verify`` finds."""
    if not (lake / MARK).exists():
        return {"rows": {}, "states": {}, "faults": []}
    manifest, findings = verify.verify(lake)
    faults = [f"{item.state} {item.file}: {item.detail}" for item in findings if item.is_fault]
    lacking = {item.file for item in findings if item.is_fault}
    is_whole = lacking.isdisjoint(file.path for held in manifest.entries() for file in held.entry.files)
    return {
        "rows": contents(lake) if is_whole and manifest.captures else {},
        "states": Counter(item.state for item in findings),
        "faults": faults,
    }


def strays(lake: Path) -> list[str]:
    """Return the files of a lake that its manifest does not name, and its empty folders."""
    manifest = lake_manifest.read(Store(lake))
    named = {*manifest.named(), MARK}
    there = {path.relative_to(lake).as_posix() for path in lake.rglob("*") if path.is_file()}
    empty = [path.name for path in lake.rglob("*") if path.is_dir() and not any(path.iterdir())]
    below = f"{lake_manifest.FOLDER}/"
    return sorted([*empty, *(path for path in there - named if HIDDEN in path or not path.startswith(below))])


class Explorer:
    """Kills commands on lakes, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._temporary)
        self._traces = [str(path) for path in sorted(TRACES.rglob("*.json.gz"))]
        others = [str(path) for path in sorted(TRACES.parent.rglob("*.json.gz")) if str(path) not in self._traces][:2]
        self._exported, self._database = folder / "other.duckdb", folder / "all.duckdb"
        self._done("ingest", *others, "--db", self._exported, "--jobs", "1")
        self._done("ingest", *self._traces, *others, "--db", self._database, "--jobs", "1")
        lake = folder / "undisturbed"
        for command in self._array(lake):
            began = time.monotonic()
            self._done(*command)
            self._seconds = time.monotonic() - began
        self._done("lake", "align", lake)
        _, self._whole = forked(partial(contents, lake))

    def _done(self, *words: str | Path) -> None:
        _, ended = forked(partial(run, *words))
        if ended is None or ended["code"] != 0:
            raise SystemExit(f"undisturbed, {' '.join(map(str, words))} ended with {ended}")

    def _array(self, lake: Path) -> list[tuple[str, ...]]:
        tasks = [("ingest", path, "--lake", str(lake), "--jobs", "1") for path in self._traces]
        return [*tasks, ("export", "lake", str(lake), "--db", str(self._exported))]

    def _commands(self, dice: random.Random, lake: Path) -> list[tuple[str, ...]]:
        """Draw the commands of a round."""
        tasks = self._array(lake)
        steps = (("align",), ("compact",), ("compact",), ("verify",), ("verify", "--remove-unused"))
        keeping: list[tuple[str, ...]] = [("lake", *step, str(lake)) for step in steps]
        together = ("ingest", *dice.sample(self._traces, 2), "--lake", str(lake), "--jobs", "1")
        return [*dice.sample(tasks, dice.randint(2, len(tasks))), dice.choice([together, tasks[0]])] + [
            dice.choice(keeping) for _ in range(dice.randint(1, 4))
        ]

    def tried(self, seed: str) -> Trial:
        """Make one trial."""
        dice = random.Random(seed)
        trial = Trial(f"seed {seed}", "commands on one lake", 0)
        states: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(dir=self._folder) as made:
            lake = Path(made) / "lake"
            for _ in range(dice.randint(1, ROUNDS)):
                jobs = planned(dice, self._commands(dice, lake), SLOWER * self._seconds, POINTS)
                ended = at_once(jobs, Path(made))
                trial.nth += sum(item.code is None for item in ended)
                trial.faults += self._faults_of(ended)
                _, left = forked(partial(looked_at, lake))
                states.update((left or {}).get("states", ()))
                trial.faults += self._faults_left(left)
            trial.faults += self._faults_at_end(dice, lake)
        trial.faults += [f"left for temporary files: {path.name}" for path in self._temporary.iterdir()]
        trial.state = ", ".join(sorted(states))
        return trial

    @staticmethod
    def _faults_of(ended: list[Ended]) -> Iterator[str]:
        for item in ended:
            last = item.said.strip().rpartition("\n")[2]
            is_verify = item.job.words[:2] == ("lake", "verify") and item.code == 1 and "missing_file" in last
            is_not_there = item.job.words[0] == "lake" and item.code == 1 and ": not a lake (" in last
            is_excused = is_verify or is_not_there or any(words in last for words in TRY_AGAIN)
            if item.code not in (None, 0) and not (item.code == 1 and is_excused):
                yield f"{' '.join(item.job.words[:3])} ended with {item.code}: {item.said[-1500:]}"
            if item.is_raw:
                yield f"raw words: {item.said[-1500:]}"

    def _faults_left(self, left: Found | None) -> Iterator[str]:
        if left is None:
            yield "the lake cannot be read"
            return
        yield from (text for text in left["faults"] if text.startswith(FAULTS))
        for path, tables in left["rows"].items():
            for table in self._whole[path].keys() | tables.keys():
                wanted = self._whole[path].get(table)
                if table not in lake_tables.FACTS and tables.get(table) != wanted:
                    yield f"half a capture: {table} of {path}: {tables.get(table)}, not {wanted}"

    def _faults_at_end(self, dice: random.Random, lake: Path) -> Iterator[str]:
        place = str(lake)
        keeping = [("lake", "align", place), ("lake", "verify", place, "--remove-unused")]
        for words in [*dice.sample(self._array(lake), len(self._array(lake))), *keeping]:
            _, ended = forked(partial(run, *words))
            if ended is None or ended["code"] != 0:
                yield f"undisturbed, {' '.join(words[:3])} ended with {ended}"
        _, left = forked(partial(looked_at, lake))
        if left is None or left["states"]:
            yield f"verify finds {left and left['states']} at the end"
        if left is None or left["rows"] != self._whole:
            yield "the rows are not those of an undisturbed lake"
        _, stray = forked(partial(strays, lake))
        if stray != []:
            yield f"left in the lake: {stray}"
        _, differing = forked(partial(self._differing, lake, dice.sample(VIEWS, ASKED)))
        if differing != []:
            yield f"views that differ from those of a database: {differing}"

    def _differing(self, lake: Path, names: list[str]) -> list[str]:
        with tracedb.connect(lake) as ours, duckdb.connect(str(self._database), read_only=True) as theirs:
            of = lake_comparison.numbers(theirs, ours)
            found = {
                name: (lake_comparison.rows(ours, name, of), lake_comparison.rows(theirs, name, {})) for name in names
            }
        return [
            name
            for name, (one, other) in found.items()
            if len(one) != len(other) or lake_comparison.differences(one, other)
        ]


def explored(seed: int, kills: int, folder: Path) -> list[Trial]:
    """Make so many trials. Each has a seed of its own, and prints how many processes were killed (``nth``)."""
    explorer = Explorer(folder)
    trials = []
    for number in range(kills):
        trials.append(explorer.tried(f"{seed}/{number}"))
        print(f"{number + 1}: {json.dumps(trials[-1].__dict__)}", file=sys.stderr, flush=True)
    return trials
