"""Reports that share work on one connection give the same answers as alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracedb.errors import NotCaptured, UsageError
from tracedb.report import registry, shared_work
from tracedb.report import run as engine
from tracedb.report.filters import Filters
from tracedb.report.query import plan
from tracedb.storage.connection import open_read_only

NAMES = ("stragglers", "gemm-spread", "range-time", "top-kernels", "roofline")
FILTERS = (Filters(), Filters(captures=("1", "2"), by=("channels",)))


def answers(connection: Any, path: Path, filters: Filters) -> list[object]:
    """Return rows, warnings and notes of reports, or why they have none."""
    found: list[object] = []
    for name in NAMES:
        try:
            ran = engine.run(connection, path, plan(connection, registry.find(name), filters, "v1"), 5)
            found.append((list(ran.answer.rows), ran.answer.warnings, ran.notes))
        except (NotCaptured, UsageError) as error:
            found.append(str(error))
    return found


def test_answers_are_those_of_each_report_alone(sample: Path) -> None:
    assert {name.replace("-", "_") for name in NAMES[:2]} <= shared_work.over_shared("v1").keys()
    with open_read_only(sample) as connection:
        alone = [answers(connection, sample, filters) for filters in FILTERS]
        with shared_work.shared():
            together = [answers(connection, sample, filters) for filters in (*FILTERS, FILTERS[0])]
    assert together == [*alone, alone[0]]


def test_work_is_done_once_for_the_same_captures(sample: Path) -> None:
    done: list[str] = []

    def work() -> int:
        done.append("work")
        return len(done)

    with open_read_only(sample) as connection:
        assert [shared_work.once("key", work) for _ in range(2)] == [1, 2]
        with shared_work.shared():
            for filters in (Filters(), Filters(), Filters(ranks=(1,)), Filters()):
                plan(connection, registry.find("top-kernels"), filters, "v1")
                shared_work.once("key", work)
    assert len(done) == 4


def test_a_single_report_matches_collectives_once(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    reading = shared_work.reading

    def spied(*given: Any) -> str:
        read.append(reading(*given))
        return read[-1]

    monkeypatch.setattr(shared_work, "reading", spied)
    with open_read_only(sample) as connection:
        query = plan(connection, registry.find("stragglers"), Filters(), "v1")
        assert engine.run(connection, sample, query, 5).answer.columns
        left = connection.execute("SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal").fetchall()
        left += connection.execute("SELECT table_name FROM duckdb_tables() WHERE temporary ORDER BY ALL").fetchall()
    assert any("temp.stragglers" in text for text in read)
    assert any("temp._collective AS x" in text for text in read)
    assert {name for (name,) in left} == {"answer", "selected_capture"}


def test_names_in_strings_and_comments_are_left(sample: Path) -> None:
    with open_read_only(sample) as connection, shared_work.shared():
        scope = plan(connection, registry.find("stragglers"), Filters(), "v1").scope
        text = "SELECT 'v1.stragglers' /* v1.stragglers */ FROM v1.stragglers, v1.memory_peak -- v1.stragglers"
        assert shared_work.reading(connection, scope, text) == text.replace("FROM v1.", "FROM temp.")
    assert shared_work.reading(connection, scope, text) == text


@pytest.mark.parametrize("name", shared_work.SHARED_VIEWS)
def test_shared_views_are_private_ones(name: str) -> None:
    assert name.startswith("_")
    assert name in shared_work.over_shared("v1")
