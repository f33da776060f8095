"""Kills of ``tracedb merge``, for ``kills.py --merge``.

After each kill the target is not there, or whole: it has every row of an undisturbed merge, in every table. The inputs
are unchanged, and the same merge again (of a target that is not there) gives the whole and leaves nothing beside it.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from robustness.kills import TRACES, Found, Point, Trial, contents, forked, looked_at, run  # noqa: E402

POINTS = {
    "before a file is made": Point("tracedb.storage.template_database:_link"),
    "file attached": Point("tracedb.storage.connection:_attach", is_after=True, most=2),
    "input attached": Point("tracedb.pipeline.merge:_check_version", most=2),
    "captures numbered": Point("tracedb.pipeline.merge:number_captures", is_after=True, most=2),
    "rows being copied": Point("tracedb.pipeline.merge:copy_rows", is_after=True, most=24),
    "input copied": Point("tracedb.pipeline.merge:_add", is_after=True, most=2),
    "before the log is moved": Point("tracedb.storage.connection:_detach", most=2),
    "after the log was moved": Point("tracedb.storage.connection:_detach", is_after=True, most=2),
    "clocks being aligned": Point("tracedb.derive.clock_alignment:_run", is_after=True, most=4),
    "clocks aligned, not committed": Point("tracedb.derive.clock_alignment:align", is_after=True),
    "before the target appears": Point("tracedb.pipeline.merge:_publish"),
    "after the target appeared": Point("tracedb.pipeline.merge:_publish", is_after=True),
    "before the account": Point("tracedb.cli.merge:account"),
}


class Explorer:
    """Kills merges of two databases, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        ranks = sorted((TRACES / "torch_profiler").iterdir())
        self._inputs = [folder / "a.duckdb", folder / "b.duckdb"]
        for path, some in zip(self._inputs, (ranks[:2], ranks[1:]), strict=True):
            forked(partial(run, "ingest", *some, "--db", path, "--jobs", "1"))
        self._digests = self._hashed()
        with self._target() as target:
            began = time.monotonic()
            _, ended = forked(lambda: self._merge(target))
            self._seconds = time.monotonic() - began
            if ended is None or ended["code"] != 0:
                raise SystemExit(f"an undisturbed merge failed: {ended}")
            _, self._whole = forked(lambda: contents(target))

    def _hashed(self) -> list[str]:
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in self._inputs]

    @contextmanager
    def _target(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._folder) as made:
            yield Path(made) / "merged.duckdb"

    def _merge(self, target: Path, told: Path | None = None) -> Found:
        return run("merge", *self._inputs, "-o", target, "--format", "json", told=told)

    def at_point(self, name: str, nth: int) -> Trial | None:
        """Kill at a named point; None where the merge does not come to it."""

        def work(target: Path, told: Path) -> Found:
            POINTS[name].arm(nth)
            return self._merge(target, told)

        return self._tried(Trial("merge", name, nth), work)

    def after(self, share: float) -> Trial | None:
        """Kill after a share of the time that the whole takes."""
        return self._tried(Trial("merge", "at a random time", after_seconds=share * self._seconds), self._merge)

    def _tried(self, trial: Trial, work: Callable[[Path, Path], Any]) -> Trial | None:
        with self._target() as target:
            told = target.with_name("told")
            was_killed, _ = forked(lambda: work(target, told), trial.after_seconds)
            if not was_killed:
                return None
            is_told = told.exists() and bool(told.read_text().strip())
            told.unlink(missing_ok=True)
            is_there = target.exists()
            _, left = forked(lambda: looked_at(target))
            again = {"code": 0} if is_there else forked(lambda: self._merge(target))[1]
            _, whole = forked(lambda: looked_at(target, is_whole=True))
            run("report", "top-kernels", "--db", target)  # clears what the killed process left
            beside = sorted(path.name for path in target.parent.iterdir() if path != target)
        trial.state = "whole target" if is_there else "no target"
        if is_there and (left is None or left["rows"] != self._whole or left["is_owing"]):
            trial.faults.append("the target is not whole")
        if is_told and not is_there:
            trial.faults.append("told as merged and not there")
        if again is None or again["code"] != 0 or whole is None or whole["rows"] != self._whole:
            trial.faults.append(f"the merge after it failed: {json.dumps(again)}")
        if beside:
            trial.faults.append(f"left beside the target: {beside}")
        if self._hashed() != self._digests:
            trial.faults.append("an input has changed")
        return trial


def explored(seed: int, kills: int, folder: Path) -> list[Trial]:
    """Kill so many times: each named point in turn, every other time at a random one of its calls or moments."""
    dice = random.Random(seed)
    explorer = Explorer(folder)
    names = list(POINTS)
    trials: list[Trial] = []
    for number in range(3 * kills):
        if len(trials) >= kills:
            break
        name = names[number // 2 % len(names)]
        trial = (
            explorer.after(dice.random()) if number % 2 else explorer.at_point(name, dice.randint(1, POINTS[name].most))
        )
        if trial is not None:
            trials.append(trial)
            print(f"{len(trials)}: {trial}", file=sys.stderr)
    return trials


def at_points(names: list[str], folder: Path) -> list[Trial]:
    """Kill once at each of the named points."""
    explorer = Explorer(folder)
    trials = []
    for name in names:
        trial = explorer.at_point(name, 1)
        if trial is None:
            raise SystemExit(f"a merge does not come to the point {name!r}")
        trials.append(trial)
    return trials
