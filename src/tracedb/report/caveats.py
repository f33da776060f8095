"""Warnings that accompany an answer, all computed in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.report import (
    captures,
    configuration_words,
    message_checks,
    pooled_rows,
    range_rules,
    rank_checks,
    shared_work,
    split_runs,
    time_caveats,
    view_template,
)
from tracedb.report.capture_counts import SELECTED, number, row, unread
from tracedb.report.definition import Report
from tracedb.report.filters import Scope
from tracedb.report.needs import Needs
from tracedb.storage import pending_facts, views

if TYPE_CHECKING:
    import duckdb

CLIPPED_PERCENT = 5
IN_FRAMES = (
    "--range matches Python frames: they hold what was launched while they ran, not the backward pass of their "
    "operators, which module-time and kernel-source assign"
)


def warnings(connection: duckdb.DuckDBPyConnection, report: Report, scope: Scope, columns: Sequence[str]) -> list[str]:
    """Return everything needed to read the answer correctly."""
    said = _outdated(connection) + unfinished(connection) + _damaged(connection)
    said += time_caveats.warnings(connection, report.view, report.needs)
    said += time_caveats.without_launch(connection, report.view)
    said += _graphs(connection) + _own_rules(connection, scope)
    if report.needs in (Needs.MESSAGES, Needs.PIPELINES):
        said += message_checks.warnings(connection, scope)
    elif report.spans_ranks:
        said += rank_checks.warnings(connection, scope)
    if report.spans_ranks:
        said += _split(connection, scope)
    said += pooled_rows.warnings(connection, report, scope, columns)
    said += configuration_words.warnings(connection, scope, columns)
    said += _clipped(connection, scope) + _without_gpu(connection, scope) + _counted(connection, report, scope)
    said += _left_out(report, scope) + _shares(report, scope, columns)
    if found := unread(connection):
        said.append(f"{found}: in the traces, but in no answer")
    if scope.in_frames:
        said += [IN_FRAMES]
    elif scope.rule:
        said += _without_rule(connection, scope) + range_rules.warnings(connection, scope.rule)
    if scope.filters.skip_warmup or scope.filters.step_range is not None or report.needs is Needs.STEPS:
        said += _without_steps(connection, scope)
    if scope.filters.step_range is not None:
        said += _warmup(connection, scope)
    return said


def _outdated(connection: duckdb.DuckDBPyConnection) -> list[str]:
    names = shared_work.once("outdated views", lambda: views.outdated(connection))
    if not names:
        return []
    return [
        f"not the views of this tracedb: {len(names)} in this file ({', '.join(names[:3])} …); "
        "the next `tracedb ingest` into it brings them up to date"
    ]


def unfinished(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return which facts across captures are still pending."""
    return [
        f"{fact.replace('_', ' ')} is not worked out yet for {number(len(captures), 'capture')} (an ingest goes on, or "
        "was cut off): answers over several captures may change; the next `tracedb ingest` of any file does it"
        for fact, captures in shared_work.once("owed", lambda: pending_facts.owed(connection)).items()
    ]


def _damaged(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = shared_work.ask(
        connection,
        """SELECT s.status, list(s.path ORDER BY s.capture_id) FROM temp.selected_capture AS s
           WHERE s.status IN ('truncated', 'repaired') GROUP BY s.status ORDER BY s.status DESC""",
    )
    meaning = {"truncated": "cut short: what follows is missing", "repaired": "mended: some events were lost"}
    return [f"{number(len(paths), 'capture')} {meaning[status]} ({captures.some_of(paths)})" for status, paths in rows]


def _split(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Return the selected captures that labels keep apart from the other ranks of their run."""
    selected = shared_work.ask(connection, "SELECT s.capture_id FROM temp.selected_capture AS s")
    return split_runs.said(connection, [number for (number,) in selected], scope.version, has_both=True)


def _graphs(connection: duckdb.DuckDBPyConnection) -> list[str]:
    replays, milliseconds = row(
        connection,
        f"SELECT count(*), format('{{:.1f}}', sum(e.duration_ns) / 1e6) FROM main.kernel_event AS e {SELECTED}"
        " WHERE e.kind = 'graph'",
    )
    if not replays:
        return []
    return [f"{number(replays, 'graph replay')} ({milliseconds} ms) recorded only as a whole; their kernels are hidden"]


def _own_rules(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    if not row(connection, "SELECT count(*) FROM main.kernel_rule")[0]:
        return []
    names = row(
        connection,
        f"""SELECT count(*) FROM {scope.version}._kernel_class AS n
            WHERE n.rule_source = 'user' AND n.class <> n.shipped_class""",
    )[0]
    return [f"rules in kernel_rule changed the class of {number(names, 'kernel name')}"] if names else []


def _clipped(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    if not row(connection, "SELECT count(*) FROM main.device AS d WHERE d.vendor = 'AMD'")[0]:
        return []
    percent = row(
        connection,
        f"""SELECT format('{{:.1f}}', percent) FROM (
                SELECT 100.0 * sum(e.duration_ns - q.clipped_duration_ns) / nullif(sum(e.duration_ns), 0) AS percent
                FROM {scope.version}._gpu_event AS e {SELECTED}
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
    if report.needs is Needs.COUNTERS:
        return []
    count = int(row(connection, f"SELECT count(*) FROM main.kernel_event AS e {SELECTED} WHERE e.is_counted")[0])
    if not count:
        return []
    which = f"{number(count, 'dispatch')} measured while hardware counters were read"
    return [
        f"{which} are taken in: their durations are not those of a plain run"
        if scope.filters.counted
        else f"{which} are left out; --counted takes them in"
    ]


def _left_out(report: Report, scope: Scope) -> list[str]:
    """Say what shares refer to where a filter chooses among the GPU events of a device."""
    filters = {"--class": scope.filters.classes, "--range": scope.filters.range}
    given = " and ".join(option for option, values in filters.items() if values)
    if not given or not view_template.tells_parts(views.View(scope.version, report.view).select):
        return []
    said = f"GPU work that {given} leave{'' if ' and ' in given else 's'} out is not idle time: "
    if report.view == "gpu_utilization":
        return [f"{said}it is counted as other work"]
    shares = f"{said}shares are of the chosen work and the idle time that ends with it"
    if report.needs is Needs.STEPS:
        return [f"{shares}; step times are those of whole steps that have such work"]
    return [shares]


def _shares(report: Report, scope: Scope, columns: Sequence[str]) -> list[str]:
    """Say what shares are of if --class leaves out the rest, and the answer is not about time of a device."""
    classes = scope.filters.classes
    is_told = view_template.tells_parts(views.View(scope.version, report.view).select)
    if not classes or "share_percent" not in columns or is_told:
        return []
    which = f"class {classes[0]}" if len(classes) == 1 and not classes[0].startswith("!") else "the chosen classes"
    return [f"shares are of {which} alone; without --class they are of all kernels"]


def _without_gpu(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    count = row(
        connection,
        """SELECT count(*) FROM temp.selected_capture AS s WHERE s.status = 'no_gpu_activity'""",
    )[0]
    return [f"{count} of {number(scope.captures, 'capture')} without GPU activity"] if count else []


def _without_rule(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Report captures missing from the answer because only other rules put kernels into ranges."""
    count = row(
        connection,
        f"""SELECT count(*) FROM (SELECT e.capture_id FROM main.annotation_kernel AS e {SELECTED}
            GROUP BY e.capture_id HAVING count(*) FILTER (e.rule = '{scope.rule}') = 0)""",
    )[0]
    if not count:
        return []
    other = "time" if scope.rule != "time" else "process"
    return [
        f"{number(count, 'capture')} left out: no kernel in a range by rule {scope.rule}; --rule {other} may show them"
    ]


def _without_steps(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    count = row(
        connection,
        f"""SELECT count(*) FROM temp.selected_capture AS s
            ANTI JOIN {scope.version}._step AS t ON t.capture_id = s.capture_id AND t.step IS NOT NULL""",
    )[0]
    if not count:
        return []
    pattern = scope.filters.step_range
    which = "no steps marked" if pattern is None else f"no range matches --step-range {pattern!r}"
    left = "left out by --skip-warmup" if scope.filters.skip_warmup else "without steps"
    return [f"{number(count, 'capture')} {left}: {which}"]


def _warmup(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """Report ranges that --step-range matches and that are no steps, because they are inside a warm-up."""
    if _outdated(connection):
        return []
    count = row(connection, f"SELECT count(*) FROM {scope.version}._chosen_step AS e {SELECTED} WHERE e.is_warmup")[0]
    if not count:
        return []
    which = f"{number(count, 'range')} that --step-range matches"
    return [f"{which} {'is' if count == 1 else 'are'} inside a range named warmup and left out of the steps"]
