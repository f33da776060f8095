"""Links of graph replays are derived across captures, whichever is loaded first, and follow removals and merges."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.loading import ask, ingest
from support.traces import Event, call, kernel, op, write

LINKS = "SELECT capture_id, event_id, rule, origin, origin_capture_id, op_id FROM graph_link ORDER BY ALL"
RULES = "SELECT match_rule, count(*) FROM v1.graph_attribution GROUP BY ALL ORDER BY ALL"


def eager() -> list[Event]:
    return [
        event
        for i, name in enumerate("abc")
        for event in (
            op(100 * i, 20, f"op_{name}", 10 + i),
            call(100 * i + 5, 2, 20 + i, external=10 + i),
            kernel(1000 + 10 * i, 5, name, correlation=20 + i),
        )
    ]


def replay() -> list[Event]:
    kernels = [kernel(5100 + 10 * i, 5, name, correlation=90) for i, name in enumerate("abc")]
    return [op(4000, 5, "other", 50), call(5000, 5, 90, "cudaGraphLaunch"), *kernels]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "a_eager.json", eager()), write(tmp_path / "b_replay.json", replay())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_whichever_is_loaded_first(order: tuple[int, int], files: tuple[Path, Path], tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    for place in order:
        assert ingest(files[place], db=db).exit_code == 0
    assert ask(db, RULES) == [("aligned", 3)]
    assert ask(db, "SELECT count(*) FROM meta.owed") == [(0,)]


def test_removing_the_origin_removes_the_links(files: tuple[Path, Path], tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    assert ingest(*files, db=db).exit_code == 0
    assert [row[4] for row in ask(db, LINKS)] == [1, 1, 1]
    assert run("remove", "a_eager", "--db", db).exit_code == 0
    assert ask(db, RULES) == [("none", 3)]


def test_a_merge_links_what_was_apart(files: tuple[Path, Path], tmp_path: Path) -> None:
    parts = [tmp_path / "1.duckdb", tmp_path / "2.duckdb"]
    for path, db in zip(files, parts, strict=True):
        assert ingest(path, db=db).exit_code == 0
    whole = tmp_path / "whole.duckdb"
    assert run("merge", *parts, "-o", whole).exit_code == 0
    assert ask(whole, RULES) == [("aligned", 3)]
