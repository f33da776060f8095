"""Rows in every form that an ingester may yield, and what is known about them without querying the database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from click.testing import Result

from support.fakes import Fake, register
from support.loading import ask, ingest
from tracedb.derive import annotation_buffer
from tracedb.ingester import Rows

ANNOTATIONS = pa.table(
    {
        "annotation_id": [4, 5, 6, 7, 8],
        "name": ["step", "inner", "mark", "other", "beside"],
        "style": ["user", "user", "mark", "user", "gpu_projection"],
        "thread_id": [1, 1, 1, None, None],
        "start_ns": [0, 10, 12, 5, 5],
        "duration_ns": [90, 20, None, 60, 60],
    }
)
EXPECTED = [
    (4, "step", "user", 1, 0, 90, False, None, 0),
    (5, "inner", "user", 1, 10, 20, False, 4, 1),
    (6, "mark", "mark", 1, 12, None, False, None, None),
    (7, "other", "user", None, 5, 60, False, None, 0),
    (8, "beside", "gpu_projection", None, 5, 60, False, None, None),
]
FORMS: dict[str, Callable[[duckdb.DuckDBPyConnection], list[Any]]] = {
    "table": lambda scratch: [ANNOTATIONS],
    "batch": lambda scratch: ANNOTATIONS.to_batches(),
    "two": lambda scratch: [ANNOTATIONS.slice(3), ANNOTATIONS.slice(0, 3)],
    "none and all": lambda scratch: [ANNOTATIONS.slice(0, 0), ANNOTATIONS],
    "relation": lambda scratch: [relation(scratch, "FROM given")],
    "table, then relation": lambda scratch: [ANNOTATIONS.slice(0, 2), relation(scratch, "FROM given OFFSET 2")],
    "relation, then table": lambda scratch: [relation(scratch, "FROM given LIMIT 2"), ANNOTATIONS.slice(2)],
    "narrow": lambda scratch: [
        ANNOTATIONS.set_column(0, "annotation_id", ANNOTATIONS["annotation_id"].cast(pa.int16())).set_column(
            2, "style", ANNOTATIONS["style"].dictionary_encode()
        )
    ],
    "texts for numbers": lambda scratch: [
        ANNOTATIONS.set_column(4, "start_ns", ANNOTATIONS["start_ns"].cast(pa.string()))
    ],
    "with the columns that are found": lambda scratch: [
        ANNOTATIONS.append_column("depth", pa.nulls(5, pa.int32())).append_column("parent_id", pa.nulls(5, pa.int64()))
    ],
}


def relation(scratch: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyRelation:
    scratch.register("given", ANNOTATIONS)
    return scratch.sql(query)


def load(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: Callable[[duckdb.DuckDBPyConnection], list[Rows]],
    name: str = "x.fake",
) -> Result:
    register(monkeypatch, ("fake", Fake("fake", ".fake", rows)))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    return ingest(folder / name, db=folder / "db", new=True)


class TestAnnotations:
    @pytest.mark.parametrize("most", [-1, 2, 5_000])
    @pytest.mark.parametrize("form", FORMS)
    def test_of_any_form(self, form: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(annotation_buffer, "MOST_HELD", most)

        def rows(scratch: duckdb.DuckDBPyConnection) -> list[Rows]:
            given = [Rows("annotation", data) for data in FORMS[form](scratch)]
            return [*given, Rows("capture", pa.table({"host": ["h"]}))]

        assert load(tmp_path, monkeypatch, rows).exit_code == 0
        columns = "annotation_id, name, style, thread_id, start_ns, duration_ns, is_open, parent_id, depth"
        assert ask(tmp_path / "db", f"SELECT {columns} FROM annotation ORDER BY annotation_id") == EXPECTED

    @pytest.mark.parametrize("column", ["annotation_id", "start_ns", "style"])
    def test_without_what_each_must_have(self, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = ANNOTATIONS.column_names.index(column)
        faulty = ANNOTATIONS.set_column(place, column, pa.nulls(5, ANNOTATIONS[column].type))
        done = load(
            tmp_path,
            monkeypatch,
            lambda scratch: [Rows("annotation", faulty), Rows("capture", pa.table({"host": ["h"]}))],
        )
        assert done.exit_code == 1
        assert f"NOT NULL constraint failed: annotation.{column}" in done.stderr


class TestCapture:
    EVENTS = pa.table(
        {
            "event_id": [1, 2],
            "kind": ["kernel", "memcpy"],
            "name": ["k", "c"],
            "start_ns": [0, 9],
            "duration_ns": [5, 5],
        }
    )
    ISSUES = pa.table({"code": ["zebra", "ant"], "severity": ["warning", "note"], "detail": ["z", None]})

    @pytest.mark.parametrize("is_relation", [False, True])
    @pytest.mark.parametrize("rank", [3, "3", None])
    def test_what_is_told_is_what_lies_in_the_database(
        self, rank: int | str | None, is_relation: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        capture = pa.table({"rank": [rank], "events_read": [7], "rows_written": pa.array([2], pa.int8()), "part": [9]})

        def rows(scratch: duckdb.DuckDBPyConnection) -> list[Rows]:
            scratch.register("given_capture", capture)
            before = [Rows("kernel_event", self.EVENTS), Rows("ingest_issue", self.ISSUES)]
            return [*before, Rows("capture", scratch.sql("FROM given_capture") if is_relation else capture)]

        done = load(tmp_path, monkeypatch, rows, "channels=2/rank8.fake")
        assert done.exit_code == 0
        (told,) = json.loads(done.stdout)["rows"]
        wanted = {
            "rank": 8 if rank is None else 3,
            "status": "complete",
            "kernels": 1,
            "events_read": 7,
            "rows_written": 2,
        }
        assert {name: told[name] for name in (*wanted, "events_skipped", "labels")} == {
            **wanted,
            "events_skipped": None,
            "labels": {"channels": "2"},
        }
        columns = "source, part, rank, status, events_read, events_skipped, rows_written, ingester, size_bytes"
        assert ask(tmp_path / "db", f"SELECT {columns}, labels::VARCHAR, length(sha256) FROM capture") == [
            ("fake", 0, 8 if rank is None else 3, "complete", 7, None, 2, "fakes 1.0", 1, "{channels=2}", 64)
        ]
        issues = ask(tmp_path / "db", "SELECT code, severity, count FROM ingest_issue ORDER BY code")
        noted = [] if rank is None else [("rank_conflict", "note", 1)]
        assert issues == [("ant", "note", 1), *noted, ("zebra", "warning", 1)]

    def test_a_rank_that_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        done = load(tmp_path, monkeypatch, lambda scratch: [Rows("capture", pa.table({"rank": ["first"]}))])
        assert done.exit_code == 1
        assert "first" in done.stderr
