"""The hooks of a view's text: filters, groups and joins are put in where the view has them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tracedb.report import registry, view_template
from tracedb.report.needs import Needs
from tracedb.report.view_template import By, Edits, resolve
from tracedb.storage import schema, template_database, views


@pytest.fixture(scope="module")
def shipped() -> Iterator[duckdb.DuckDBPyConnection]:
    with template_database.opened() as connection:
        yield connection


class TestHooks:
    TEXT = """WITH a AS (
    SELECT /* by k */ /* grain */ k.rank, k.labels, /* end grain */ k.name, count(*) AS calls
    FROM v1.kernels AS k /* join k */
    WHERE true /* filter k */
    GROUP BY /* by k */ /* grain */ k.rank, k.labels, /* end grain */ k.name
), b AS (SELECT /* by */ sum(calls) AS calls FROM a GROUP BY /* by */)
SELECT /* by */ a.name, sum(a.calls) OVER (/* partition */)
FROM a JOIN b ON a.calls = b.calls /* using a b */"""

    def test_without_edits_only_comments_go(self) -> None:
        text = resolve(self.TEXT.replace("GROUP BY /* by */)", ")"), Edits())
        assert "/*" not in text
        assert "SELECT k.rank, k.labels, k.name, count(*) AS calls" in text

    def test_everything_is_put_in(self) -> None:
        threads = By("threads", lambda base: f"{base}.labels['threads']")
        text = resolve(self.TEXT, Edits([threads], {"k": ["k.rank = 3"]}, {"k": "INNER JOIN x ON true"}))
        assert (
            text
            == """WITH a AS (
    SELECT k.labels['threads'] AS "threads", k.name, count(*) AS calls
    FROM v1.kernels AS k
INNER JOIN x ON true
    WHERE true
    AND (k.rank = 3)
    GROUP BY k.labels['threads'], k.name
), b AS (SELECT "threads", sum(calls) AS calls FROM a GROUP BY "threads")
SELECT "threads", a.name, sum(a.calls) OVER (PARTITION BY "threads")
FROM a JOIN b ON a.calls = b.calls AND a."threads" IS NOT DISTINCT FROM b."threads\""""
        )

    def test_what_is_put_in_is_not_searched_for_hooks(self) -> None:
        text = resolve("SELECT 1 WHERE true /* filter k */", Edits(filters={"k": ["k.name = '/* filter k */,)'"]}))
        assert text.endswith("AND (k.name = '/* filter k */,)')")

    def test_bases_have_the_columns_that_filters_use(self, shipped: duckdb.DuckDBPyConnection) -> None:
        for base, view in view_template.BASES.items():
            there = {column.name for column in schema.columns(shipped, "v1", view)}
            needed = {"capture_id", "source", "rank", "labels"}
            needed |= set() if base in ("part", "load") else {"name"}  # --range finds their ranges by a join
            own = {"r": {"annotation_id"}, "l": {"launch_id", "thread_id", "start_ns", "duration_ns"}}
            own |= {base: {"event_id", "device_id", "step", "step_index"} for base in ("part", "load")}
            needed |= own.get(base, {"event_id", "device_id", "vendor"})
            if base in ("whole", "pair"):  # of several captures
                needed = {"source", "labels", "step", "step_index"}
            if base == "stage":
                needed = {"capture_id", "source", "rank", "labels", "step", "step_index"}
            if base == "memory":  # of no GPU event
                needed = {"capture_id", "source", "rank", "labels", "device_id"}
            assert needed <= there

    def test_every_filter_hook_has_a_known_base(self) -> None:
        for item in registry.every():
            text = item.text or views.find(item.view).select
            assert view_template.bases(text, "filter") | view_template.bases(text, "by") <= set(view_template.BASES)
            # Paths of steps (``is_by_span``) are found at load: their rows are chosen by capture, not in the text.
            # What commands stored (replay, whatif) is not filtered either.
            is_stored = item.needs in (Needs.REPLAY, Needs.SCENARIOS)
            assert view_template.bases(text, "filter") or is_stored or item.is_by_span, item.view
