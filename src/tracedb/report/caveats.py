"""What must be said beside an answer, or instead of one. All of it is counted by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.report import captures, pooled_rows, range_rules, rank_checks, time_caveats
from tracedb.report.definition import Report
from tracedb.report.filters import Filters, Scope, described
from tracedb.storage import owed, views

if TYPE_CHECKING:
    import duckdb

_SELECTED = "SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id"
CLIPPED_PERCENT = 5


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    (row,) = connection.execute(query).fetchall()
    return tuple(row)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def reason(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, path: Path) -> str:
    """Return in words why a report has no answer."""
    if not scope.captures:
        return f"{path}: holds no captures; load some with `tracedb ingest PATH --db {path}`"
    if report.needs == "samples":
        return (
            "no sampled operators: no range is named fwd|OPERATOR|key=value|… (or bwd, step, comm); "
            "`tracedb sample` records some"
        )
    if report.needs not in ("calls", "ranges") and (impossible := time_caveats.all_impossible(connection)):
        return impossible
    if report.needs == "launches" and (apart := time_caveats.without_clock(connection)):
        return apart
    kernels, graphs, others, counted = _row(
        connection,
        f"""SELECT count(*) FILTER (e.kind = 'kernel' AND (e.is_counted IS NOT TRUE OR {scope.filters.counted})),
                   count(*) FILTER (e.kind = 'graph'), count(*) FILTER (e.kind NOT IN ('kernel', 'graph')),
                   count(*) FILTER (e.is_counted)
            FROM main.kernel_event AS e {_SELECTED} WHERE e.time_fault IS NULL""",
    )
    if report.needs == "counters":
        return "no hardware counters were captured; record with rocprofv3 --pmc, see `tracedb export rocprof-yaml`"
    if counted and not kernels and report.needs not in ("ranges", "attention", "calls", "copies"):
        return (
            f"nothing but dispatches measured while hardware counters were read ({counted}), which is no plain run; "
            "--counted takes them in"
        )
    if report.needs in ("ranges", "attention") and not _ranges(connection, scope):
        return "no ranges (NVTX, roctx, record_function) were captured"
    if not kernels + graphs + others:
        return _no_gpu(connection, scope)
    if report.needs == "calls" and not _calls(connection):
        return "no API calls (CUDA or HIP runtime and driver) were captured"
    if report.needs == "copies" and not others:
        return f"no copies or memsets were captured, only {_many(kernels + graphs, 'kernel')}"
    if not kernels and report.needs not in ("gpu", "gaps", "calls", "copies"):
        return _no_kernels(connection, graphs, others)
    left = _left_out(scope.filters)
    if report.needs == "gaps":
        return f"no gaps{left}: on no device is idle time between its {_many(kernels + graphs + others, 'GPU event')}"
    if report.needs == "launches" and not _calls(connection):
        return f"no API calls were captured, so nothing is known of the launch of {_many(kernels, 'kernel')}"
    if report.needs == "launches":
        return f"no launches were captured{left}: no API call is known to have launched one of the kernels"
    if report.needs == "collectives":
        return f"no collectives were captured{left}: none of the {_many(kernels, 'kernel')} is one"
    if report.needs == "gemms":
        return f"no GEMMs were captured{left}: none of the {_many(kernels, 'kernel')} is of class matmul"
    if report.needs == "matches":
        return f"no collective was captured of two ranks or more{left}: nobody waits for nobody"
    if report.needs == "overlap":
        return _no_overlap(connection, scope, left)
    if report.needs == "attention":
        return (
            f"no ranges are named after the parts of attention{left} (such as computing_attention_scores, "
            "computing_softmax, final_matmul) and hold GPU work outside the warm-up"
        )
    if scope.rule:
        other = "" if scope.rule == "process" else "; try --rule process"
        return f"no kernel was launched inside a range by rule {scope.rule}{left}{other}"
    return f"nothing is left{left}"


def _no_overlap(connection: duckdb.DuckDBPyConnection, scope: Scope, left: str) -> str:
    gemms, collectives = _row(
        connection,
        f"""SELECT count(*) FILTER (e.class = 'matmul'), count(*) FILTER (e.class = 'collective')
            FROM {scope.version}._gpu_event AS e {_SELECTED} WHERE e.kind = 'kernel'""",
    )
    if not gemms:
        return f"no GEMMs were captured{left}: no kernel is of class matmul"
    if not collectives:
        return f"no collectives were captured{left}, so nothing ran beside the {_many(gemms, 'GEMM call')}"
    return f"none of the {_many(gemms, 'GEMM call')} ran beside a collective{left}"


def _calls(connection: duckdb.DuckDBPyConnection) -> int:
    return int(_row(connection, f"SELECT count(*) FROM main.launch AS e {_SELECTED}")[0])


def _ranges(connection: duckdb.DuckDBPyConnection, scope: Scope) -> int:
    query = f"SELECT count(*) FROM {scope.version}._range AS e {_SELECTED}"
    return int(_row(connection, query)[0])


def _left_out(filters: Filters) -> str:
    said = [described(filters)] if filters.on_captures else []
    said += [f"--device {device}" for device in filters.devices]
    said += [f"--class {name!r}" for name in filters.classes]
    said += [f"--range {filters.range!r}"] if filters.range is not None else []
    said += [f"--skip-warmup {filters.skip_warmup}"] if filters.skip_warmup else []
    said += [f"--step-range {filters.step_range!r}"] if filters.step_range is not None else []
    return f" with {', '.join(said)}" if said else ""


def _unread(connection: duckdb.DuckDBPyConnection) -> str:
    """Return which GPU work is in traces, but in no table; nothing where none is."""
    count, names = _row(
        connection,
        """SELECT sum(i.count)::BIGINT, string_agg(DISTINCT i.name, ', ' ORDER BY i.name) FROM (
               SELECT e.capture_id, e.count, split_part(e.code, ':', 2) AS name FROM main.ingest_issue AS e
               WHERE e.code LIKE 'device_events_not_read:%') AS i
           SEMI JOIN temp.selected_capture AS s ON s.capture_id = i.capture_id""",
    )
    return f"{_many(count, 'device event')} of a category that tracedb does not read ({names})" if count else ""


def _no_gpu(connection: duckdb.DuckDBPyConnection, scope: Scope) -> str:
    if unread := _unread(connection):
        return f"no GPU activity that tracedb reads: {_many(scope.captures, 'capture')} with {unread}"
    graph_launches, launches = _row(
        connection,
        f"SELECT count(*) FILTER (e.name ILIKE '%GraphLaunch%'), count(*) FROM main.launch AS e {_SELECTED}",
    )
    if graph_launches:
        return (
            f"{_many(graph_launches, 'graph launch').replace('launchs', 'launches')} present but no kernels; "
            "record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
        )
    ops = int(_row(connection, f"SELECT count(*) FROM main.op AS e {_SELECTED}")[0])
    ranges = int(_row(connection, f"SELECT count(*) FROM main.annotation AS e {_SELECTED}")[0])
    samples = int(_row(connection, f"SELECT count(*) FROM main.operator_sample AS e {_SELECTED}")[0])
    held = [(ops, "operator"), (launches, "API call"), (ranges, "range"), (samples, "operator sample")]
    what = ", ".join(_many(count, noun) for count, noun in held if count) or "no events"
    return (
        f"no GPU activity was captured: {_many(scope.captures, 'capture')} of the CPU only ({what}); "
        "record again with the GPU traced"
    )


def _no_kernels(connection: duckdb.DuckDBPyConnection, graphs: int, others: int) -> str:
    if graphs:
        return (
            f"no kernels were captured: {_many(graphs, 'graph replay')} recorded only as a whole; "
            "record again with graph nodes traced (nsys profile --cuda-graph-trace=node)"
        )
    return f"no kernels were captured, only {others} {'copy or memset' if others == 1 else 'copies and memsets'}"


def warnings(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, columns: Sequence[str]) -> list[str]:
    """Return what one must know to read the answer rightly."""
    said = _outdated(connection) + unfinished(connection) + _damaged(connection)
    said += time_caveats.warnings(connection, report.view, report.needs)
    said += _graphs(connection) + _own_rules(connection, scope)
    if report.spans_ranks:
        said += rank_checks.warnings(connection, scope)
    said += pooled_rows.warnings(connection, report, scope, columns)
    said += _clipped(connection, scope) + _without_gpu(connection, scope) + _counted(connection, report, scope)
    if unread := _unread(connection):
        said.append(f"{unread}: in the traces, but in no answer")
    if scope.rule:
        said += _without_rule(connection, scope) + range_rules.warnings(connection, scope.rule)
    if scope.filters.skip_warmup or scope.filters.step_range is not None:
        said += _without_steps(connection, scope)
    return said


def _outdated(connection: duckdb.DuckDBPyConnection) -> list[str]:
    names = views.outdated(connection)
    if not names:
        return []
    return [
        f"not the views of this tracedb: {len(names)} in this file ({', '.join(names[:3])} …); "
        "the next `tracedb ingest` into it brings them up to date"
    ]


def unfinished(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return which facts over several captures are still to be worked out."""
    return [
        f"{fact.replace('_', ' ')} is not worked out yet for {_many(len(captures), 'capture')} (an ingest goes on, or "
        "was cut off): answers over several captures may change; the next `tracedb ingest` of any file does it"
        for fact, captures in owed.owed(connection).items()
    ]


def _damaged(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        """SELECT s.status, list(s.path ORDER BY s.capture_id) FROM temp.selected_capture AS s
           WHERE s.status IN ('truncated', 'repaired') GROUP BY s.status ORDER BY s.status DESC"""
    ).fetchall()
    meaning = {"truncated": "cut short: what follows is missing", "repaired": "mended: some events were lost"}
    return [f"{_many(len(paths), 'capture')} {meaning[status]} ({captures.some_of(paths)})" for status, paths in rows]


def _graphs(connection: duckdb.DuckDBPyConnection) -> list[str]:
    replays, milliseconds = _row(
        connection,
        f"SELECT count(*), format('{{:.1f}}', sum(e.duration_ns) / 1e6) FROM main.kernel_event AS e {_SELECTED}"
        " WHERE e.kind = 'graph'",
    )
    if not replays:
        return []
    return [f"{_many(replays, 'graph replay')} ({milliseconds} ms) recorded only as a whole; their kernels are hidden"]


def _own_rules(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    if not _row(connection, "SELECT count(*) FROM main.kernel_rule")[0]:
        return []
    names = _row(
        connection,
        f"""SELECT count(*) FROM {scope.version}._kernel_class AS n
            WHERE n.rule_source = 'user' AND n.class <> n.shipped_class""",
    )[0]
    return [f"rules in kernel_rule changed the class of {_many(names, 'kernel name')}"] if names else []


def _clipped(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    if not _row(connection, "SELECT count(*) FROM main.device AS d WHERE d.vendor = 'AMD'")[0]:
        return []
    percent = _row(
        connection,
        f"""SELECT format('{{:.1f}}', percent) FROM (
                SELECT 100.0 * sum(e.duration_ns - q.clipped_duration_ns) / nullif(sum(e.duration_ns), 0) AS percent
                FROM {scope.version}._gpu_event AS e {_SELECTED}
                LEFT JOIN main.clipped_event AS q ON q.capture_id = e.capture_id AND q.event_id = e.event_id
                WHERE e.vendor = 'AMD' AND e.kind = 'kernel')
            WHERE percent > {CLIPPED_PERCENT} UNION ALL SELECT NULL LIMIT 1""",
    )[0]
    if percent is None:
        return []
    return [
        f"ROCm durations run into the next kernel of their queue: {percent} % of the recorded sum; "
        "clipped_duration_ns in kernels has them cut"
    ]


def _counted(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope) -> list[str]:
    if report.needs == "counters":
        return []
    count = int(_row(connection, f"SELECT count(*) FROM main.kernel_event AS e {_SELECTED} WHERE e.is_counted")[0])
    if not count:
        return []
    which = f"{_many(count, 'dispatch').replace('dispatchs', 'dispatches')} measured while hardware counters were read"
    return [
        f"{which} are taken in: their durations are not those of a plain run"
        if scope.filters.counted
        else f"{which} are left out; --counted takes them in"
    ]


def _without_gpu(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    count = _row(
        connection,
        """SELECT count(*) FROM temp.selected_capture AS s WHERE s.status = 'no_gpu_activity'""",
    )[0]
    return [f"{count} of {_many(scope.captures, 'capture')} hold no GPU activity"] if count else []


def _without_rule(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Say which captures have kernels in ranges by other rules only, and so are not in the answer."""
    count = _row(
        connection,
        f"""SELECT count(*) FROM (SELECT e.capture_id FROM main.annotation_kernel AS e {_SELECTED}
            GROUP BY e.capture_id HAVING count(*) FILTER (e.rule = '{scope.rule}') = 0)""",
    )[0]
    if not count:
        return []
    other = "time" if scope.rule != "time" else "process"
    return [
        f"{_many(count, 'capture')} left out: no kernel in a range by rule {scope.rule}; --rule {other} may show them"
    ]


def _without_steps(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    count = _row(
        connection,
        f"""SELECT count(*) FROM temp.selected_capture AS s
            ANTI JOIN {scope.version}._step AS t ON t.capture_id = s.capture_id AND t.step IS NOT NULL""",
    )[0]
    if not count:
        return []
    pattern = scope.filters.step_range
    which = "no steps marked" if pattern is None else f"no range matches --step-range {pattern!r}"
    left = "left out by --skip-warmup" if scope.filters.skip_warmup else "without steps"
    return [f"{_many(count, 'capture')} {left}: {which}"]
