"""Check for obstacles to matching ranks: duplicates, missing ranks, clocks. All in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracedb.errors import TracedbError
from tracedb.report import captures, shared_work

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Scope


def check(connection: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Raise ``TracedbError`` if recordings of one rank cannot be told apart: then nothing can be matched."""
    rows = _asked(
        connection,
        scope,
        f"""SELECT c.rank, list(c.path ORDER BY c.capture_id)
            FROM {scope.version}._capture_set AS s
            INNER JOIN main.capture AS c ON c.capture_id = s.capture_id
            SEMI JOIN temp.selected_capture AS t ON t.capture_id = s.capture_id
            WHERE s.rank IS NOT NULL AND c.status <> 'no_gpu_activity'
            GROUP BY s.set_id, c.rank HAVING count(*) > 1 ORDER BY s.set_id, c.rank""",
    )
    if not rows or not _is_duplicate(connection, scope):
        return
    rank, paths = rows[0]
    more = f", and so are {len(rows) - 1} more ranks" if len(rows) > 1 else ""
    raise TracedbError(
        f"rank {rank} is {len(paths)} times in one configuration ({captures.some_of(paths)}){more}, and neither paths, "
        "steps nor times tell which recordings of the ranks belong together; ingest each run into a new file of its "
        "own, or all into one with a --label run=NAME for each"
    )


def _is_duplicate(connection: duckdb.DuckDBPyConnection, scope: Scope) -> bool:
    ((count,),) = _asked(
        connection,
        scope,
        f"""SELECT count(*) FROM {scope.version}._collective_event AS e
            SEMI JOIN temp.selected_capture AS t ON t.capture_id = e.capture_id WHERE e.has_duplicate""",
    )
    return bool(count)


def warnings(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Return the caveats of how ranks were matched."""
    (found,) = _asked(
        connection,
        scope,
        f"""SELECT
                count(*) FILTER (x.collective <> 'sendrecv' OR x.match_rule <> 'unmatched') AS calls,
                count(*) FILTER (x.collective <> 'sendrecv' AND x.match_rule = 'unmatched') AS unmatched,
                count(*) FILTER (x.collective = 'sendrecv' AND x.match_rule = 'unmatched') AS messages,
                count(*) FILTER (x.match_rule = 'order alone') AS by_order_alone,
                count(*) FILTER (x.match_rule <> 'unmatched' AND x.ranks < x.ranks_expected) AS short,
                min(x.ranks) FILTER (x.match_rule <> 'unmatched' AND x.ranks < x.ranks_expected) AS fewest,
                max(x.ranks_expected) FILTER (x.match_rule <> 'unmatched' AND x.ranks < x.ranks_expected) AS expected,
                count(*) FILTER (NOT x.is_by_rank) AS without_rank,
                count(*) FILTER (x.ranks > 1) AS matched,
                count(*) FILTER (x.ranks > 1 AND x.clock_residual_ns IS NULL) AS unaligned,
                count(*) FILTER (x.ranks > 1 AND x.start_ns IS NULL) AS incomparable,
                format('{{:.1f}}', median(x.clock_residual_ns) / 1e3) AS residual_us,
                format('{{:.1f}}', median(x.skew_start_ns) / 1e3) AS skew_us,
                median(x.clock_residual_ns) > median(x.skew_start_ns) AS is_worse,
                count(*) FILTER (x.collective = 'alltoall' AND x.is_uneven AND x.sent_bytes IS NOT NULL) AS uneven,
                count(*) FILTER (
                    x.collective = 'alltoall' AND x.ranks > 1 AND x.is_uneven AND x.message_bytes IS NOT NULL
                    AND x.sent_bytes IS NULL) AS unknown
            FROM {scope.version}._collective AS x
            WHERE x.set_id IN (
                SELECT s.set_id FROM {scope.version}._capture_set AS s
                SEMI JOIN temp.selected_capture AS t ON t.capture_id = s.capture_id)""",
    )
    return _said(*found)


def _asked(connection: duckdb.DuckDBPyConnection, scope: Scope, query: str) -> list[tuple[Any, ...]]:
    return shared_work.ask(connection, shared_work.reading(connection, scope, query))


def _said(
    calls: int,
    unmatched: int,
    messages: int,
    by_order_alone: int,
    short: int,
    fewest: int | None,
    expected: int | None,
    without_rank: int,
    matched: int,
    unaligned: int,
    incomparable: int,
    residual_us: Any,
    skew_us: Any,
    is_worse: bool | None,
    uneven: int,
    unknown: int,
) -> list[str]:
    said = []
    if unmatched:
        said.append(
            f"{unmatched:,} of {calls:,} collectives are of one rank, matched with no other: transfer and waiting "
            "cannot be told apart there"
        )
    if messages:
        said.append(
            f"{messages:,} kernels of sends and receives are not matched here; point-to-point has their messages"
        )
    if by_order_alone:
        said.append(f"{by_order_alone:,} collectives matched by their order alone: process groups were not recorded")
    if short:
        said.append(
            f"{short:,} collectives have fewer ranks than their group ({fewest} of {expected} at worst): captures of "
            "the others are missing, or have fewer steps"
        )
    if without_rank and matched:
        said.append("ranks were not recorded: the device, or a number, stands for the rank")
    if incomparable:
        said.append(f"clocks cannot be compared in {incomparable:,} collectives: no rank is named as last there")
    elif unaligned:
        said.append(f"clocks are not aligned in {unaligned:,} collectives: starts are compared as recorded")
    if is_worse:
        said.append(
            f"clocks of the ranks agree to {residual_us} µs (median residual), which is more than the starts differ "
            f"({skew_us} µs): no rank is named as last if it is closer"
        )
    if uneven:
        said.append(
            f"{uneven:,} all-to-all calls move different sizes between ranks: algorithm bandwidth is of the largest "
            "rank's message, bus bandwidth of what the rank that sends most sends to others (sent_bytes)"
        )
    if unknown:
        said.append(
            f"{unknown:,} all-to-all calls move different sizes between ranks and their split sizes were not recorded "
            "on every rank: their bandwidth is not known"
        )
    return said
