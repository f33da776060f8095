"""Kills of commands that use one database file at once, for ``kills.py --at-once``.

In each trial, one file is loaded, labelled, emptied, merged and read by processes that run at the same moment, some of
which are killed with SIGKILL; one round follows the other without an undisturbed command in between. In a round, each
trace is either loaded, labelled or removed. After each round

- the file opens, and every capture in it has all rows of an undisturbed run;
- what a command that was not killed has reported as loaded, labelled or removed is so;
- every capture that was there before, and that no command was to remove, is there, with the labels that it had;
- the target of a merge is not there, or whole;
- commands that were not killed have succeeded, or ended with exit code 1 and one line that says why.

Then all traces are loaded undisturbed. After that, the file has the rows of an undisturbed one, and nothing else is
left beside it or in the folder for temporary files.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from robustness.at_once import Ended, at_once, planned  # noqa: E402
from robustness.kills import TRACES, Found, Trial, contents, forked, run  # noqa: E402

ROUNDS = 4
SLOWER = 3
"""How much longer a command takes beside the others than alone, about."""
ACROSS = ("clock_alignment", "graph_link")
MATTER = ("loaded", "labelled", "removed")
EXPECTED = re.compile(r"no capture|has no captures|no such database|no such file|nothing was written into it yet")
"""What a command says whose captures are not there."""
Labels = dict[str, dict[str, str]]


def labels(db: Path) -> Labels:
    """Return the labels of each capture, by its path."""
    with duckdb.connect(str(db), read_only=True) as connection:
        return dict(connection.execute("SELECT path, labels FROM main.capture").fetchall())


def looked_at(db: Path) -> Found:
    """Return rows and labels of a database; none if there is no such file."""
    return {"rows": contents(db), "labels": labels(db)} if db.exists() else {"rows": {}, "labels": {}}


class Explorer:
    """Kills commands on one database, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._temporary)
        self._traces = sorted(TRACES.rglob("*.json.gz"))
        whole = folder / "whole.duckdb"
        for path in self._traces:
            began = time.monotonic()
            self._done("ingest", path, "--db", whole, "--jobs", "1")
            self._seconds = time.monotonic() - began
        _, self._whole = forked(partial(looked_at, whole))

    def _done(self, *words: str | Path) -> None:
        _, ended = forked(partial(run, *words))
        if ended is None or ended["code"] != 0:
            raise SystemExit(f"undisturbed, {' '.join(map(str, words))} ended with {ended}")

    def tried(self, seed: str) -> Trial:
        """Make one trial."""
        dice = random.Random(seed)
        trial = Trial(f"seed {seed}", "commands on one database", 0)
        before: Labels = {}
        states = []
        with tempfile.TemporaryDirectory(dir=self._folder) as made, tempfile.TemporaryDirectory() as other:
            db = Path(made) / "run.duckdb"
            for number in range(dice.randint(1, ROUNDS)):
                roles = {path: dice.choice(MATTER if before else MATTER[:1]) for path in self._traces}
                commands = self._commands(dice, db, Path(other), roles, number)
                ended = at_once(planned(dice, commands, SLOWER * self._seconds), Path(other))
                trial.nth += sum(item.code is None for item in ended)
                _, left = forked(partial(looked_at, db))
                trial.faults += [f"round {number}: {text}" for text in self._faults(ended, roles, before, left, number)]
                trial.faults += self._faults_of_merges(Path(other))
                before = (left or {}).get("labels", {})
                states.append(len(before))
            trial.faults += self._faults_at_end(db)
        trial.faults += [f"left for temporary files: {path.name}" for path in self._temporary.iterdir()]
        trial.state = f"{max(states)} captures"
        return trial

    def _commands(
        self, dice: random.Random, db: Path, other: Path, roles: dict[Path, str], number: int
    ) -> list[tuple[str, ...]]:
        """Return the commands of a round: one or two for each trace, and some that change nothing in the file."""
        place = ("--db", str(db), "--wait", "100")
        found: list[tuple[str, ...]] = []
        for path, role in roles.items():
            of_role = {
                "loaded": ("ingest", str(path), *place, "--jobs", "1"),
                "labelled": ("label", path.name, f"round{number}=yes", *place),
                "removed": ("remove", path.name, *place),
            }
            found += [of_role[role]] * dice.choice((1, 1, 2))
        for copy in range(dice.randint(0, 1)):
            found.append(("merge", str(db), "-o", str(other / f"merged{number}{copy}.duckdb"), "--wait", "100"))
        found += [("report", "top-kernels", *place)] * dice.randint(0, 1)
        return found

    def _faults(
        self, ended: list[Ended], roles: dict[Path, str], before: Labels, left: Found | None, number: int
    ) -> Iterator[str]:
        if left is None:
            yield "the file cannot be opened"
            return
        for item in ended:
            said = item.said.strip().splitlines()
            errors = [line for line in said if line.startswith("tracedb: error:")]
            is_excused = item.code in (1, 2, 3) and len(errors) == 1 and EXPECTED.search(said[-1])
            if item.code not in (None, 0) and not is_excused:
                yield f"{' '.join(item.job.words)} ended with {item.code}: {item.said[-1500:]}"
            if item.is_raw:
                yield f"raw words: {item.said[-1500:]}"
        now: Labels = left["labels"]
        for path, tables in left["rows"].items():
            wanted = self._whole["rows"][path]
            for table in (wanted.keys() | tables.keys()) - {"capture", *ACROSS}:  # labels are in capture
                if tables.get(table) != wanted.get(table):
                    yield f"half a capture: {table} of {path}: {tables.get(table)}, not {wanted.get(table)}"
        for path, role in roles.items():
            done = any(item.code == 0 and {str(path), path.name} & set(item.job.words) for item in ended)
            yield from self._faults_of_one(str(path), role, done, before, now, f"round{number}")

    @staticmethod
    def _faults_of_one(path: str, role: str, is_done: bool, before: Labels, now: Labels, key: str) -> Iterator[str]:
        if role == "removed":
            if is_done and path in now:
                yield f"{path} is there, though reported as removed"
            if path in before and path in now and before[path] != now[path]:
                yield f"{path} had the labels {before[path]}, now {now[path]}"
            return
        if path in before and path not in now:
            yield f"{path} is lost"
        if role == "loaded" and is_done and path not in now:
            yield f"{path} is not there, though reported as loaded"
        if path in before and path in now:
            if role == "labelled" and is_done and now[path].get(key) != "yes":
                yield f"{path} has the labels {now[path]}, though reported as labelled"
            if {name: value for name, value in now[path].items() if name != key} != before[path]:
                yield f"{path} had the labels {before[path]}, now {now[path]}"

    def _faults_of_merges(self, other: Path) -> Iterator[str]:
        for target in sorted(other.glob("merged*")):
            if target.suffix != ".duckdb":
                yield f"left beside the target of a merge: {target.name}"
                continue
            _, merged = forked(partial(looked_at, target))
            for path, tables in merged["rows"].items() if merged else ():
                wanted = self._whole["rows"][path]
                if any(tables.get(table) != wanted.get(table) for table in wanted.keys() - {"capture", *ACROSS}):
                    yield f"half a capture in {target.name}: {path}"
            if merged is None:
                yield f"{target.name} cannot be opened"
            target.unlink()

    def _faults_at_end(self, db: Path) -> Iterator[str]:
        traces = [str(path) for path in self._traces]
        for words in (["ingest", *traces, "--jobs", "1"], ["label", "*", *self._cleared()]):
            _, ended = forked(partial(run, *words, "--db", db))
            if ended is None or ended["code"] != 0:
                yield f"undisturbed, {words[0]} ended with {ended}"
        _, left = forked(partial(looked_at, db))
        if left != self._whole:
            yield "the rows are not those of an undisturbed database"
        beside = sorted(path.name for path in db.parent.iterdir() if path != db)
        if beside:
            yield f"left beside the database: {beside}"

    @staticmethod
    def _cleared() -> list[str]:
        return [f"round{number}=" for number in range(ROUNDS)]


def explored(seed: int, kills: int, folder: Path) -> list[Trial]:
    """Make so many trials. Each has a seed of its own, and prints how many processes were killed (``nth``)."""
    explorer = Explorer(folder)
    trials = []
    for number in range(kills):
        trials.append(explorer.tried(f"{seed}/{number}"))
        print(f"{number + 1}: {json.dumps(trials[-1].__dict__)}", file=sys.stderr, flush=True)
    return trials
