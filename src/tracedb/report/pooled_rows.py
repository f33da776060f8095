"""Warn if a row of an answer pools different profilers, configurations, recordings, ranks or GPUs. All in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracedb.report import captures, shared_work, view_template
from tracedb.report.definition import Report
from tracedb.report.filters import BY_BUILT_IN, Scope, label
from tracedb.report.needs import Needs
from tracedb.storage import views

if TYPE_CHECKING:
    import duckdb


def warnings(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, columns: Sequence[str]) -> list[str]:
    """Return what each row pools, and the option that separates it. ``columns``: those of the answer."""
    if report.needs in (Needs.SPREADS, Needs.MEASURES):  # which are over all runs of a setting, and name it
        return []
    said = []
    columns = [*columns, "capture_id"] if "capture" in scope.filters.by else columns
    if not {"capture_id", "labels"} & set(columns):  # a row with labels is of one configuration
        said += _sources(connection, scope) + _configurations(connection, scope) + _recordings(connection)
    elif report.needs is Needs.STEPS:  # a configuration may have several runs
        said += _recordings(connection)
    elif report.needs is Needs.GPU and "cycle" in columns and "rank" not in columns:
        said += _recordings_of_unknown_ranks(connection)
    said += _gpus(connection, report, scope, columns)
    if scope.filters.by:
        said += _devices(connection, scope) + _numbers_of_steps(connection, report, scope)
    return said


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return shared_work.ask(connection, query)


def _sources(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    if "source" in scope.filters.by:
        return []
    apart = ", ".join(dict.fromkeys(["s.rank", *_groups(scope)]))
    ((sources,),) = _rows(
        connection,
        f"""SELECT list(DISTINCT source ORDER BY source) FROM (
               SELECT s.source, min(s.source) OVER ranks <> max(s.source) OVER ranks AS is_mixed
               FROM temp.selected_capture AS s
               WHERE s.status <> 'no_gpu_activity' AND s.source <> 'torch_memory'
               WINDOW ranks AS (PARTITION BY {apart})) WHERE is_mixed""",
    )
    if not sources:
        return []
    return [f"captures of one rank by several profilers are pooled ({', '.join(sources)}); choose one with --source"]


def _configurations(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    varying = [key for key in scope.varying if key not in scope.filters.by]
    if not varying:
        return []
    groups = _groups(scope)
    differ = ", ".join(
        f"count(DISTINCT coalesce({label('s', key)}, chr(0))) > 1 AS differ_{place}"
        for place, key in enumerate(varying)
    )
    ((count, *is_pooled),) = _rows(
        connection,
        f"""SELECT coalesce(max(configurations), 0), {", ".join(f"bool_or(differ_{n})" for n in range(len(varying)))}
            FROM (SELECT count(DISTINCT s.labels) AS configurations, {differ} FROM temp.selected_capture AS s
                  {f"GROUP BY {', '.join(groups)}" if groups else ""})""",
    )
    keys = [key for key, is_one in zip(varying, is_pooled, strict=True) if is_one]
    if not keys:
        return []
    hint = " ".join(f"--by {key}" for key in keys)
    which = f"up to {count} configurations pooled in a row" if groups else f"{count} configurations pooled"
    return [f"{which}, differing in {', '.join(keys)}; {hint} keeps them apart"]


def _groups(scope: Scope) -> list[str]:
    """Return the columns of captures ``s`` that --by keeps apart."""
    by = scope.filters.by
    return [f"s.{name}" for name in ("rank", "source") if name in by] + [
        label("s", name) for name in by if name not in BY_BUILT_IN
    ]


def _recordings(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = _rows(
        connection,
        """SELECT list(s.path ORDER BY s.capture_id) FROM temp.selected_capture AS s
           GROUP BY s.source, s.rank, s.labels HAVING count(DISTINCT s.path) > 1 ORDER BY min(s.capture_id)""",
    )
    if not rows:
        return []
    paths = [path for (group,) in rows for path in group]
    return [
        f"{len(paths)} captures with the same source, rank and labels pooled ({captures.some_of(paths)}); "
        "--by capture keeps them apart, and --capture chooses one"
    ]


def _recordings_of_unknown_ranks(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = _rows(
        connection,
        """SELECT list(DISTINCT s.path ORDER BY s.path) FROM temp.selected_capture AS s
           WHERE s.rank IS NULL AND s.status <> 'no_gpu_activity'
           GROUP BY s.source, s.labels HAVING count(DISTINCT s.path) > 1 ORDER BY min(s.capture_id)""",
    )
    return [
        f"{len(paths)} files with the same source and labels, whose ranks are not known, are taken for one run "
        f"({captures.some_of(paths)}); --capture or --path chooses one"
        for (paths,) in rows
    ]


def are_separate_files(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether no selected capture has a rank, and several files would therefore be taken for one run."""
    ((ranks,),) = _rows(connection, "SELECT count(s.rank) FROM temp.selected_capture AS s")
    return ranks == 0 and bool(_recordings_of_unknown_ranks(connection))


def _gpus(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, columns: Sequence[str]) -> list[str]:
    """Report how many ranks of a configuration, and GPUs of a capture, a row sums."""
    has = {*columns, *scope.filters.by}
    if report.spans_ranks or "ranks" in has:
        return []
    text = report.text or views.find(report.view, scope.version).select
    grouped = view_template.bases(text, "by")
    ranks = (
        0 if {"capture_id", "rank"} & has or view_template.COLLECTIVES in grouped else _most_ranks(connection, scope)
    )
    has_device = bool({"device_id", "device", "DevId"} & has)
    can_have_device = not grouped & {view_template.RANGES, view_template.CALLS, view_template.COLLECTIVES}
    gpus = 0 if has_device or not can_have_device else _most_gpus(connection)
    processes = 0 if "capture_id" in has else _most_processes(connection, has_device)
    said = [f"{ranks} ranks of a configuration"] if ranks > 1 else []
    said += [f"{processes} processes of a file whose ranks are not known"] if processes > 1 else []
    said += [f"{gpus} GPUs of a capture"] if gpus > 1 else []
    if not said:
        return []
    options = ["--by rank"] if ranks > 1 else []
    is_by_device = can_have_device and not has_device and (gpus > 1 or _most_processes(connection, True) == 1)
    options += ["--by device"] if is_by_device else []
    hints = [f"{' '.join(options)} keeps them apart"] if options else []
    hints += ["--capture chooses one process"] if processes > 1 and not is_by_device else []
    hints += ["gpu-timeline-average has their mean"] if report.view == "gpu_timeline" else []
    return [f"each row pools up to {' and '.join(said)}; {', '.join(hints)}"]


def _most_ranks(connection: duckdb.DuckDBPyConnection, scope: Scope) -> int:
    ((count,),) = _rows(
        connection,
        f"""SELECT coalesce(max(ranks), 0) FROM (
                SELECT count(DISTINCT c.rank) AS ranks FROM {scope.version}._capture_configuration AS c
                SEMI JOIN temp.selected_capture AS s ON s.capture_id = c.capture_id
                WHERE c.status IS DISTINCT FROM 'no_gpu_activity'
                GROUP BY c.configuration_id)""",
    )
    return int(count)


def _most_processes(connection: duckdb.DuckDBPyConnection, by_device: bool) -> int:
    """Return the largest number of captures without rank from one file; ``by_device``: that share a device number."""
    ((count,),) = _rows(
        connection,
        """SELECT coalesce(max(processes), 0) FROM (
               SELECT count(*) AS processes FROM temp.selected_capture AS s
               WHERE s.rank IS NULL AND s.status <> 'no_gpu_activity'
               GROUP BY s.source, s.labels, s.path)""",
    )
    if count < 2 or not by_device:
        return int(count)
    ((count,),) = _rows(
        connection,
        """SELECT coalesce(max(processes), 0) FROM (
               SELECT count(DISTINCT e.capture_id) AS processes FROM main.kernel_event AS e
               INNER JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id
               WHERE s.rank IS NULL
               GROUP BY s.source, s.labels, s.path, e.device_id)""",
    )
    return int(count)


def _most_gpus(connection: duckdb.DuckDBPyConnection) -> int:
    ((count,),) = _rows(
        connection,
        """SELECT coalesce(max(devices), 0) FROM (
               SELECT count(DISTINCT e.device_id) AS devices FROM main.kernel_event AS e
               SEMI JOIN (
                   SELECT d.capture_id FROM main.device AS d
                   SEMI JOIN temp.selected_capture AS s ON s.capture_id = d.capture_id
                   GROUP BY d.capture_id HAVING count(*) > 1
               ) AS m ON m.capture_id = e.capture_id
               GROUP BY e.capture_id)""",
    )
    return int(count)


def _devices(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Report device numbers that stand for several GPUs: each process numbers its own."""
    by = scope.filters.by
    if "device" not in by or "capture" in by:
        return []
    groups = _groups(scope)
    rows = _rows(
        connection,
        f"""SELECT d.device_id, count(DISTINCT d.uuid) AS gpus FROM main.device AS d
            INNER JOIN temp.selected_capture AS s ON s.capture_id = d.capture_id
            GROUP BY {", ".join(["d.device_id", *groups])} HAVING gpus > 1 ORDER BY gpus DESC, d.device_id LIMIT 1""",
    )
    hint = "--capture chooses captures" if "rank" in by else "--by rank keeps ranks apart, --capture chooses captures"
    return [
        f"device {device} is {gpus} different GPUs in different captures, pooled here; {hint}" for device, gpus in rows
    ]


def _numbers_of_steps(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope) -> list[str]:
    """Report groups that are sums over different numbers of steps."""
    if "step" in scope.filters.by or report.spans_ranks or scope.filters.range:
        return []
    ((least, most),) = _rows(
        connection,
        f"""SELECT min(steps), max(steps) FROM (
                SELECT count(DISTINCT t.step) AS steps FROM {scope.version}._step AS t
                SEMI JOIN temp.selected_capture AS s ON s.capture_id = t.capture_id
                GROUP BY t.capture_id)""",
    )
    if least == most:
        return []
    return [f"captures hold {least} to {most} steps, and sums are over all of their steps; --by step separates them"]
