"""Changing loaded captures: ``tracedb label``, ``tracedb remove``, ``ingest --label`` again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.loading import ask, contents, ingest, opened, trace

RUN = Path(__file__).resolve().parents[2] / "examples" / "run" / "sweep_sample" / "256thread" / "nccl_4channels"
ALIGNED = "SELECT * FROM clock_alignment ORDER BY capture_id"
OWED = "SELECT * FROM meta.owed"


@pytest.fixture(scope="module")
def four_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("four") / "db"
    assert ingest(RUN, db=db).exit_code == 0
    return db


@pytest.fixture
def db(tmp_path: Path, four_ranks: Path) -> Path:
    return Path(shutil.copy(four_ranks, tmp_path / "db"))


def labels_of(db: Path) -> dict[int, dict[str, str]]:
    return dict(ask(db, "SELECT capture_id, labels FROM capture"))


def rows(*arguments: str | Path) -> list[dict[str, Any]]:
    done = run(*arguments, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return list(json.loads(done.stdout)["rows"])


def test_a_removed_capture_leaves_the_file_as_if_it_had_never_been_loaded(db: Path, tmp_path: Path) -> None:
    without = tmp_path / "without"
    files = sorted(RUN.rglob("*.json.gz"))
    assert ingest(*files[:3], db=without).exit_code == 0
    before = sum(len(found) for table, found in contents(db).items() if table != "capture")

    (removed,) = rows("remove", "rank3/trace_rank3.json.gz", "--db", db)

    assert removed["capture_id"] == 4
    after = contents(db)
    assert removed["rows_removed"] >= before - sum(len(found) for table, found in after.items() if table != "capture")
    assert after == contents(without)
    assert ask(db, ALIGNED) == ask(without, ALIGNED) != []
    assert ask(db, OWED) == []


def test_clocks_are_aligned_to_another_capture_once_the_reference_is_removed(db: Path) -> None:
    ((reference,),) = ask(db, "SELECT DISTINCT reference_capture_id FROM clock_alignment")
    assert run("remove", str(reference), "--db", db).exit_code == 0
    ((other,),) = ask(db, "SELECT DISTINCT reference_capture_id FROM clock_alignment")
    assert other in {1, 2, 3, 4} - {reference}
    files = [path for path in sorted(RUN.rglob("*.json.gz")) if f"rank{reference - 1}" in path.name]
    assert ingest(*files, db=db).exit_code == 0  # its bytes are no longer known
    assert ask(db, "SELECT count(*) FROM capture") == [(4,)]


def test_no_table_keeps_a_row_of_a_removed_capture(db: Path) -> None:
    assert run("remove", "*", "--db", db).exit_code == 0
    with opened(db) as connection:
        tables = connection.execute(
            """SELECT table_name FROM duckdb_columns() AS c
            WHERE c.database_name = current_catalog() AND c.schema_name = 'main' AND c.column_name = 'capture_id'
            AND (c.database_name, c.schema_name, c.table_name) IN
                (SELECT (t.database_name, t.schema_name, t.table_name) FROM duckdb_tables() AS t)"""
        ).fetchall()
        assert ("kernel_event",) in tables and len(tables) > 30
        held = {t for (t,) in tables if connection.execute(f"FROM main.{t} LIMIT 1").fetchall()}
    assert held == set()
    assert run("report", "top-kernels", "--db", db).exit_code == 3


def test_labels_are_set_changed_and_removed(db: Path) -> None:
    found = rows("label", "2", "rank3", "nthreads=512", "team=a", "--db", db)
    assert [row["capture_id"] for row in found] == [2, 4]
    assert found[0]["labels"] == {"channels": "4", "sweep": "sweep_sample", "team": "a", "threads": "512"}
    assert run("label", "4", "team=", "--db", db).exit_code == 0
    labels = labels_of(db)
    assert labels[1] == labels[3] == {"channels": "4", "sweep": "sweep_sample", "threads": "256"}
    assert labels[2]["team"] == "a"
    assert "team" not in labels[4]
    assert {row["team"] for row in rows("report", "top-kernels", "--by", "team", "--db", db)} == {None, "a"}


def test_a_label_that_parts_the_ranks_parts_their_clocks(db: Path) -> None:
    assert {reference for (reference,) in ask(db, "SELECT reference_capture_id FROM clock_alignment")} == {1}
    assert run("label", "3", "4", "run=late", "--db", db).exit_code == 0
    assert ask(db, "SELECT capture_id, reference_capture_id FROM clock_alignment ORDER BY ALL") == [
        (1, 1),
        (2, 1),
        (3, 3),
        (4, 3),
    ]
    assert ask(db, OWED) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["label", "9", "a=b"], "label 9: no capture has this number"),
        (["label", "1", "trace", "a=b"], "label trace: 4 captures match: 1 "),
        (["label", "1"], "name the labels to set as KEY=VALUE"),
        (["label", "a=b"], "name the captures to label"),
        (["label", "no/such=x", "a=b"], "label no/such=x: no capture has it in its path"),
        (["label", "1", "=b"], "a label is KEY=VALUE, not '=b'"),
        (["remove", "1", "9"], "remove 9: no capture has this number"),
        (["remove", "trace_rank"], "remove trace_rank: 4 captures match: 1 "),
    ],
)
def test_words_that_mean_no_capture_change_nothing(db: Path, arguments: list[str], words: str) -> None:
    before = contents(db)
    done = run(*arguments, "--db", db)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr or words in str(done.exception)
    assert contents(db) == before


@pytest.mark.parametrize("command", [["remove", "1"], ["label", "1", "a=b"]])
def test_without_a_database_none_is_made(tmp_path: Path, command: list[str]) -> None:
    done = run(*command, "--db", tmp_path / "none")
    assert done.exit_code == 1
    assert not (tmp_path / "none").exists()


def test_a_known_file_gets_the_labels_of_a_later_call(tmp_path: Path) -> None:
    db, path = tmp_path / "db", trace(tmp_path / "x.json")
    assert ingest(path, db=db, flags=["--label", "team=a", "--label", "lr=1"]).exit_code == 0
    done = ingest(path, db=db, flags=["--label", "team=b"])
    assert done.exit_code == 0
    assert "its bytes are loaded as capture 1, which now has team=b" in done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["status"], row["capture_id"], row["labels"]) == ("known", 1, {"lr": "1", "team": "b"})
    assert labels_of(db) == {1: {"lr": "1", "team": "b"}}
    again = ingest(path, db=db, flags=["--label", "team=b"])
    assert "now has" not in again.stderr
    assert json.loads(again.stdout)["rows"][0]["capture_id"] is None


def test_a_label_is_given_to_every_capture_of_a_known_file_and_aligns_clocks_anew(db: Path) -> None:
    files = sorted(RUN.rglob("*.json.gz"))
    done = ingest(*files[2:], db=db, flags=["--label", "run=late"])
    assert done.exit_code == 0, done.stderr
    assert [("run" in labels) for _, labels in sorted(labels_of(db).items())] == [False, False, True, True]
    assert {reference for (reference,) in ask(db, "SELECT reference_capture_id FROM clock_alignment")} == {1, 3}
    assert ask(db, OWED) == []


def test_a_label_that_splits_a_run_is_warned_of(db: Path) -> None:
    """The other ranks lack it, so it is a configuration of its own: named at once, and in every report over ranks."""
    assert run("label", "*", "run=a", "--db", db).exit_code == 0
    done = run("label", "1", "note=bad", "--db", db)
    said = "rank 0 (capture 1) counts as a configuration of its own, apart from ranks 1, 2, 3 (captures 2, 3, 4)"
    ways = "`tracedb label 2 3 4 note=bad` or `tracedb label 1 note=` joins them"
    assert f"warning: {said}: only it has note=bad; {ways}" in done.stderr
    assert "bad" in done.stdout and "rank0" in done.stdout
    for name in ("configurations", "stragglers"):
        assert said in run("report", name, "--db", db).stderr
    assert said not in run("report", "configurations", "--db", db, "--rank", "1").stderr
    assert "of its own" not in run("label", "2", "3", "4", "note=bad", "--db", db).stderr
    assert "of its own" not in run("report", "configurations", "--db", db).stderr


def test_a_rank_loaded_without_the_labels_of_the_others_is_warned_of(db: Path) -> None:
    assert run("label", "*", "algo=tree a", "proto=LL", "--db", db).exit_code == 0
    assert run("remove", "3", "--db", db).exit_code == 0
    done = ingest(RUN, db=db)
    ((number,),) = ask(db, "SELECT capture_id FROM capture WHERE rank = 2")
    said = (
        f"rank 2 (capture {number}) counts as a configuration of its own, apart from ranks 0, 1, 3 (captures 1, 2, 4)"
    )
    mends = f"`tracedb label {number} 'algo=tree a' proto=LL` joins them"
    assert f"{said}: it lacks algo=tree a proto=LL; {mends}" in done.stderr
    assert "of its own" not in run("label", str(number), "algo=tree a", "proto=LL", "--db", db).stderr
