"""Critical paths found for one report: of ranges, of a window of time, or over all ranks of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from tracedb.dependencies import host_work, meetings, recorded_arrays, spans
from tracedb.dependencies.across import Ranks
from tracedb.dependencies.path import Graph, Span
from tracedb.dependencies.spans import Window
from tracedb.derive import critical_segment
from tracedb.errors import NotCaptured


def find(connection: duckdb.DuckDBPyConnection, window: Window | None, is_across_ranks: bool) -> None:
    """Fill ``temp.chosen_segment`` with paths of ``temp.selected_capture``, each with a number ``path_id``.

    The paths are those of the steps (``v1._step``), or of a window, in ns after the first GPU event of a run.
    Captures without them have no rows. Raises ``NotCaptured`` if paths over ranks are wanted and no ranks meet.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE chosen_segment AS SELECT s.capture_id AS path_id, s.* "
        "FROM main.critical_segment AS s LIMIT 0"
    )
    for number, rows in _across(connection, window) if is_across_ranks else _alone(connection, window):
        connection.register("chosen_rows", rows)
        connection.execute(
            "INSERT INTO temp.chosen_segment BY NAME SELECT ?::BIGINT AS path_id, * FROM chosen_rows", [number]
        )
        connection.unregister("chosen_rows")


def _alone(connection: duckdb.DuckDBPyConnection, window: Window | None) -> Iterator[tuple[int, pa.Table]]:
    chosen = connection.execute("SELECT s.capture_id FROM temp.selected_capture AS s ORDER BY s.capture_id").fetchall()
    for (capture_id,) in chosen:
        graph = Graph(recorded_arrays.read(connection, capture_id))
        rows = critical_segment.of_spans(graph, _spans(connection, graph, capture_id, window))
        if rows is not None:
            yield capture_id, rows.append_column("capture_id", _repeated(capture_id, len(rows)))


def _spans(connection: duckdb.DuckDBPyConnection, graph: Graph, capture_id: int, window: Window | None) -> list[Span]:
    if window is not None:
        return spans.in_window(connection, graph, capture_id, window)
    has_chosen = connection.execute("SELECT getvariable('step_range') IS NOT NULL").fetchall() == [(True,)]
    found = spans.chosen(connection, graph, capture_id)
    return [span for span in found if span.step is not None] if has_chosen else found


def _across(connection: duckdb.DuckDBPyConnection, window: Window | None) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of the paths of each recording with several ranks."""
    sets = connection.execute(
        """SELECT list(s.capture_id ORDER BY s.capture_id),
               list(s.capture_id ORDER BY s.capture_id) FILTER (
                   s.capture_id IN (SELECT p.capture_id FROM temp.selected_capture AS p))
           FROM v1._capture_set AS s
           INNER JOIN main.capture AS c ON c.capture_id = s.capture_id
           WHERE c.status IS DISTINCT FROM 'no_gpu_activity'
           GROUP BY s.set_id ORDER BY s.set_id"""
    ).fetchall()
    is_any = False
    for number, (captures, chosen) in enumerate(sets):
        met = meetings.read(connection, captures) if chosen and len(captures) > 1 else None
        if met is None:
            continue
        is_any = True
        ranks = Ranks(met, lambda capture: Graph(recorded_arrays.read(connection, capture)))
        yield from ((number, rows) for rows in _of_ranks(connection, ranks, captures, chosen, window))
    if not is_any:
        raise NotCaptured(
            "no critical path across ranks: no two ranks are known to meet in collectives or messages on a common "
            "clock; ingest the captures of all ranks together (`tracedb report collectives` shows what is matched)"
        )


def _of_ranks(
    connection: duckdb.DuckDBPyConnection,
    ranks: Ranks,
    captures: Sequence[int],
    chosen: Sequence[int],
    window: Window | None,
) -> Iterator[pa.Table]:
    steps: dict[int | None, dict[int, Span]] = {}
    for capture in captures:
        for span in _spans(connection, ranks.graph(capture), capture, window):
            steps.setdefault(span.step, {})[capture] = span
    for _, found in sorted(steps.items(), key=lambda item: -1 if item[0] is None else item[0]):
        ends = [capture for capture in chosen if capture in found]
        first = 0
        for piece in ranks.path(found, ends) if ends else ():
            works: dict[int, host_work.Work] = {}
            rows = critical_segment.of_path(ranks.graph(piece.capture_id), piece.span, piece.segments, works)
            if rows is None:
                continue
            ordinal = pa.array(np.arange(first, first + len(rows)))
            rows = rows.set_column(rows.column_names.index("ordinal"), "ordinal", ordinal)
            yield rows.append_column("capture_id", _repeated(piece.capture_id, len(rows)))
            first += len(rows)


def _repeated(number: int, count: int) -> pa.Array:
    return pa.array(np.full(count, number, np.int64))
