"""Merging databases: ``tracedb merge A B -o C`` and ``tracedb ingest A --db C``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import run
from support.loading import ask, contents, ingest, trace
from tracedb.pipeline import merge as engine

RUN = Path(__file__).resolve().parents[2] / "examples" / "run" / "sweep_sample" / "256thread" / "nccl_4channels"
ALIGNED = "SELECT * FROM clock_alignment ORDER BY capture_id"


def merged(*arguments: str | Path) -> list[dict[str, Any]]:
    done = run("merge", *arguments, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return list(json.loads(done.stdout)["rows"])


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the ranks 0 and 1 in one database, 1 to 3 in another, and all in a third."""
    folder = tmp_path_factory.mktemp("parts")
    ranks = [RUN / "torch_profiler" / f"rank{rank}" for rank in range(4)]
    for name, files in (("a", ranks[:2]), ("b", ranks[1:]), ("whole", ranks)):
        assert ingest(*files, db=folder / f"{name}.duckdb").exit_code == 0
    return folder


def test_ranks_of_two_databases_are_as_if_ingested_into_one(parts: Path, tmp_path: Path) -> None:
    target = tmp_path / "c.duckdb"
    rows = merged(parts / "a.duckdb", parts / "b.duckdb", "-o", target)
    told = [
        (Path(row["database"]).name, *(row[key] for key in ("number", "capture_id", "rank", "status"))) for row in rows
    ]
    assert told == [
        ("a.duckdb", 1, 1, 0, "merged"),
        ("a.duckdb", 2, 2, 1, "merged"),
        ("b.duckdb", 1, 2, 1, "known"),
        ("b.duckdb", 2, 3, 2, "merged"),
        ("b.duckdb", 3, 4, 3, "merged"),
    ]  # fmt: skip
    assert contents(target) == contents(parts / "whole.duckdb")
    assert ask(target, ALIGNED) == ask(parts / "whole.duckdb", ALIGNED) != []
    assert ask(target, "SELECT * FROM meta.owed") == []
    assert [path.name for path in tmp_path.iterdir()] == ["c.duckdb"]


def test_a_database_is_ingested_into_another_one(parts: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(parts / "a.duckdb", tmp_path / "db.duckdb"))
    done = ingest(parts / "b.duckdb", db=db)
    assert done.exit_code == 0, done.stderr
    assert [(row["capture_id"], row["rank"]) for row in json.loads(done.stdout)["rows"]] == [(3, 2), (4, 3)]
    assert ask(db, ALIGNED) == ask(parts / "whole.duckdb", ALIGNED)
    assert contents(db) == contents(parts / "whole.duckdb")


def test_labels_are_given_to_all_captures_of_a_database(parts: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(parts / "a.duckdb", tmp_path / "db.duckdb"))
    assert ingest(parts / "b.duckdb", db=db, flags=["--label", "machine=two"]).exit_code == 0
    assert ask(db, "SELECT rank, labels['machine'] FROM capture ORDER BY rank") == [
        (0, None), (1, "two"), (2, "two"), (3, "two")
    ]  # fmt: skip
    again = ingest(parts / "b.duckdb", db=db)
    assert [row["status"] for row in json.loads(again.stdout)["rows"]] == ["known"]


def test_a_folder_of_databases_and_traces_into_a_new_one(parts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(parts / "b.duckdb", folder / "b.duckdb")
    shutil.copytree(RUN, folder / "run")
    db = folder / "all.duckdb"
    plan = run("ingest", folder, "--db", db, "--dry-run", "--format", "json")
    assert [row["source"] for row in json.loads(plan.stdout)["rows"]].count("tracedb database") == 1
    done = ingest(folder, db=db, new=True)
    assert done.exit_code == 0, done.stderr
    assert ask(db, "SELECT rank FROM capture ORDER BY capture_id") == [(1,), (2,), (3,), (0,)]
    again = ingest(folder, db=db)
    assert again.exit_code == 0
    assert "all.duckdb (the database that is loaded into)" in again.stderr


def test_what_belongs_to_no_capture_comes_once_and_settings_are_of_the_first(tmp_path: Path) -> None:
    for number in (1, 2):
        db = tmp_path / f"{number}.duckdb"
        assert ingest(trace(tmp_path / f"{number}.json", number), db=db).exit_code == 0
        with duckdb.connect(str(db)) as connection:
            connection.execute("INSERT INTO kernel_rule VALUES (1, 'k', ?)", [f"class {number}"])
            connection.execute(
                """INSERT INTO sample_status BY NAME SELECT
                       'linear1' AS operator, 'fp16' AS dtype, 'X' AS device, MAP {'b': 4} AS shape,
                       'out_of_memory' AS status, TIMESTAMP '2026-01-01' AS sampled_at"""
            )
    done = run("merge", tmp_path / "1.duckdb", tmp_path / "2.duckdb", "-o", tmp_path / "c.duckdb")
    assert done.exit_code == 0
    assert "2.duckdb: its rows of kernel_rule differ and are not taken over" in done.stderr
    assert ask(tmp_path / "c.duckdb", "SELECT class FROM kernel_rule") == [("class 1",)]
    assert ask(tmp_path / "c.duckdb", "SELECT operator, status FROM sample_status") == [("linear1", "out_of_memory")]


def test_times_are_judged_by_the_bounds_of_the_first(tmp_path: Path) -> None:
    for number in (1, 2):
        assert ingest(trace(tmp_path / f"{number}.json", number), db=tmp_path / f"{number}").exit_code == 0
    with duckdb.connect(str(tmp_path / "1")) as connection:
        connection.execute("UPDATE time_bound SET limit_ns = 1000 WHERE name = 'far'")
    merged(tmp_path / "1", tmp_path / "2", "-o", tmp_path / "c")
    assert ask(tmp_path / "c", "SELECT limit_ns, applied_ns FROM time_bound WHERE name = 'far'") == [(1000, 1000)]


def test_captures_without_a_digest_are_told_by_path_and_time(tmp_path: Path) -> None:
    db = tmp_path / "a"
    assert ingest(trace(tmp_path / "a.json"), db=db).exit_code == 0
    with duckdb.connect(str(db)) as connection:
        connection.execute("UPDATE capture SET sha256 = NULL")
    shutil.copy(db, tmp_path / "b")
    assert [row["status"] for row in merged(db, tmp_path / "b", "-o", tmp_path / "c")] == ["merged", "known"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    db = tmp_path / "small.duckdb"
    assert ingest(trace(tmp_path / "small.json"), db=db).exit_code == 0
    return db


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ("UPDATE meta.schema_version SET version = 2", 1, "has schema version 2, only version 1 can be merged"),
        ("UPDATE meta.schema_version SET version = 0", 1, "has schema version 0, only version 1 can be merged"),
        ("DROP SCHEMA meta CASCADE", 1, "a DuckDB file, but not one of tracedb's"),
        ("ALTER TABLE op ALTER name DROP NOT NULL; UPDATE op SET name = NULL", 1, "holds rows that its tables may not"),
    ],
)
def test_what_cannot_be_merged_is_refused_in_one_line(
    small: Path, tmp_path: Path, change: str, code: int, words: str
) -> None:
    other = Path(shutil.copy(small, tmp_path / "other.duckdb"))
    with duckdb.connect(str(other)) as connection:
        connection.execute(change)
        connection.execute("UPDATE main.capture SET sha256 = 'another'")
    done = run("merge", small, other, "-o", tmp_path / "c.duckdb")
    assert done.exit_code == code
    assert done.stderr.count("\n") == 1 and f"{other}: " in done.stderr and words in done.stderr
    assert not (tmp_path / "c.duckdb").exists()
    before = contents(small)
    done = ingest(other, db=small)
    assert done.exit_code == 1 and words in done.stderr
    assert contents(small) == before


def test_the_target_is_neither_an_input_nor_there(small: Path, tmp_path: Path) -> None:
    before = small.read_bytes()
    (tmp_path / "link").symlink_to(small)
    done = run("merge", small, "-o", tmp_path / "link")
    assert done.exit_code == 2 and "is one of the databases to merge" in done.stderr
    other = tmp_path / "there.duckdb"
    other.write_text("something")
    done = run("merge", small, "-o", other)
    assert done.exit_code == 2 and "exists" in done.stderr and other.read_text() == "something"
    done = run("merge", small, tmp_path / "missing", "-o", tmp_path / "c")
    assert done.exit_code == 2 and "missing: no such file" in done.stderr
    assert small.read_bytes() == before
    assert not (tmp_path / "c").exists()


def test_a_target_that_appears_meanwhile_is_left_alone(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "c.duckdb"
    publish = engine._publish

    def late(whole: Path, where: Path) -> None:
        where.write_bytes(b"x" * 20_000)
        publish(whole, where)

    monkeypatch.setattr(engine, "_publish", late)
    done = run("merge", small, "-o", target)
    assert done.exit_code == 1 and "another process has made it meanwhile" in done.stderr
    assert target.read_bytes() == b"x" * 20_000


def test_a_view_in_the_place_of_a_table_is_not_read(small: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("capture_id,name\n1,secret\n")
    with duckdb.connect(str(small)) as connection:
        connection.execute("DROP TABLE op")
        connection.execute(
            f"""CREATE VIEW main.op AS SELECT 1 AS capture_id, 1 AS op_id, name, 0 AS start_ns, 0 AS duration_ns
                FROM read_csv('{secret}')"""
        )
    merged(small, "-o", tmp_path / "c.duckdb")
    assert ask(tmp_path / "c.duckdb", "SELECT count(*) FROM op") == [(0,)]


def test_columns_of_an_earlier_version_are_missing_and_others_left_aside(small: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(small)) as connection:
        connection.execute("DROP TABLE meta.owed; DROP TABLE time_bound; ALTER TABLE device DROP max_clock_mhz")
        connection.execute(
            "ALTER TABLE kernel_event ADD COLUMN theirs INTEGER; CREATE TABLE theirs (capture_id INTEGER)"
        )
    merged(small, "-o", tmp_path / "c.duckdb")
    assert ask(tmp_path / "c.duckdb", "SELECT count(*) FROM kernel_event") == [(3,)]
    assert run("views", "verify", "--db", tmp_path / "c.duckdb").exit_code == 0


def test_critical_paths_that_an_earlier_version_did_not_find(small: Path, tmp_path: Path) -> None:
    path = "SELECT capture_id, step, ordinal, bound_by, start_ns, duration_ns FROM critical_path ORDER BY ALL"
    found = ask(small, path)
    with duckdb.connect(str(small)) as connection:
        connection.execute("DROP TABLE critical_segment")
    merged(small, "-o", tmp_path / "c.duckdb")
    assert ask(tmp_path / "c.duckdb", path) == found != []


def test_samples_of_two_machines_give_the_models_of_one(tmp_path: Path) -> None:
    shapes = [(mp, b, length) for mp in (1, 2) for b in (2, 4, 8) for length in (512, 1024, 2048)]
    lines = [f"{mp},{b},{n},{mp * b * n / 100 + 5},{mp * b * n / 40 + 9}" for mp, b, n in shapes]
    for part in (1, 2):
        of_part = [line for place, line in enumerate(lines, 1) if place % 2 == part - 1]
        text = "\n".join(["mp,b,l,F_dur(us),B_dur(us)", *of_part]) + "\n"
        for folder in ("one", f"machine{part}"):
            path = tmp_path / folder / f"NVIDIAX_gelu_fp16_2_{part}.csv"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    for folder in ("one", "machine1", "machine2"):
        assert ingest(tmp_path / folder, db=tmp_path / f"{folder}.duckdb").exit_code == 0
    merged(tmp_path / "machine2.duckdb", tmp_path / "machine1.duckdb", "-o", tmp_path / "merged.duckdb")
    for name in ("one", "merged"):
        done = run("fit", "--db", tmp_path / f"{name}.duckdb", "--models", tmp_path / f"models {name}", "--jobs", "1")
        assert done.exit_code == 0, done.stderr
    one, both = (json.loads((tmp_path / f"models {name}" / "models.json").read_text()) for name in ("one", "merged"))
    assert {**one, "fitted_at": None} == {**both, "fitted_at": None}  # with the digest of models.npz
    assert len(one["models"]) == 2
