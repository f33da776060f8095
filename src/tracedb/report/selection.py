"""Select the captures of a report: validate the filters against the database."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, UsageError
from tracedb.output.shorten import tell_apart, visible
from tracedb.report import captures, range_rules, shared_work, step_ranges
from tracedb.report.filters import BY_BUILT_IN, Filters, Scope, capture_conditions, described, label, named, natural
from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Among:
    """What a report is over, if not over all that captures hold."""

    captures: str = ""
    """A query for the captures that can give rows; empty: all."""
    ranges: str = "true"
    """Condition on the ranges ``r`` that give rows."""
    is_by_capture: bool = False
    """Whether captures give rows by themselves, so that one without the chosen ranges gives none."""


_IS_TRACE = """c.source <> 'measure' OR NOT EXISTS (SELECT 1 FROM main.capture AS o WHERE o.source <> 'measure')"""
"""Files of times measured outside of traces hold no events; beside traces they are no captures to pool."""


def select(
    connection: duckdb.DuckDBPyConnection,
    filters: Filters,
    version: str,
    needs_rule: bool,
    default_rule: str | None,
    among: Among = Among(),
) -> Scope:
    """Validate the filters against the database and store the selected captures in ``temp.selected_capture``.

    ``default_rule``: the rule of range membership if none is given; None: chosen by the captures. ``among``: what a
    report is over, without which a capture is not selected.
    Raises ``UsageError`` for a label key that no capture has, ``NotCaptured`` for a filter that matches nothing.
    """
    filters = replace(filters, captures=_numbers(connection, filters), where=_where(connection, filters.where))
    _check_keys(connection, filters)
    for text, condition, listing in _single_conditions(filters):
        _check_one(connection, text, condition, listing)
    key = (statement(filters), filters.captures, filters.step_range, filters.range, among)
    shared_work.select(key, lambda: _choose(connection, filters))
    count = _scalar(connection, "SELECT count(*) FROM temp.selected_capture")
    if not count and filters.on_captures:
        raise NotCaptured(f"no capture matches all of {described(filters)}")
    _check_devices(connection, filters)
    _check_classes(connection, filters, version)
    _check_steps(connection, filters, version)
    filters = replace(filters, range=_listed_ranges(connection, filters.range, version))
    in_frames = filters.needs_rule and _are_frames(connection, filters, version)
    held = [among.captures] if among.captures else []
    if filters.range and not in_frames and among.is_by_capture:
        matching = named("r.name", "r.domain", filters.range)
        held.append(f"SELECT r.capture_id FROM {version}._range AS r WHERE {matching}")
    count = _narrow(connection, held) or count
    rule = ""
    if in_frames:
        rule = filters.rule or default_rule or "process"
        _check_launches(connection, rule)
    elif needs_rule or filters.needs_rule:
        chosen = named("r.name", "r.domain", filters.range) if filters.range else among.ranges
        range_rules.compare(connection, version, chosen)
        rule = filters.rule or range_rules.default(connection, default_rule)
    varying = _varying(connection)
    words = _label_words(connection, varying)
    return Scope(filters, version, rule, varying, count, _names(connection, filters), in_frames, words)


def _narrow(connection: duckdb.DuckDBPyConnection, held: Sequence[str]) -> int:
    """Leave only the captures that queries return, unless that are none; return how many are left, 0 for no change.

    What a capture holds that gives no rows is not said beside them.
    """
    conditions = " AND ".join(f"s.capture_id IN ({query})" for query in held) or "false"
    left = _scalar(connection, f"SELECT count(*) FROM temp.selected_capture AS s WHERE {conditions}")
    if left:
        connection.execute(f"DELETE FROM temp.selected_capture AS s WHERE NOT ({conditions})")
    return left


def statement(filters: Filters) -> str:
    """Return the statement that fills ``temp.selected_capture``, for filters that were validated."""
    wanted = capture_conditions(filters, "c")
    if not filters.on_captures:
        wanted.append(_IS_TRACE)
    conditions = " AND ".join(f"({item})" for item in wanted) or "true"
    return f"CREATE OR REPLACE TEMP TABLE selected_capture AS SELECT c.* FROM main.capture AS c WHERE {conditions}"


def _choose(connection: duckdb.DuckDBPyConnection, filters: Filters) -> None:
    connection.execute(captures.statement(filters.captures) if filters.captures else "RESET VARIABLE captures")
    connection.execute(statement(filters))
    step_ranges.choose(connection, filters.step_range)


def _names(connection: duckdb.DuckDBPyConnection, filters: Filters) -> Mapping[int, str]:
    """Return names that distinguish captures, if some selected ones share rank and labels, or with ``--by capture``."""
    alike = _scalar(
        connection,
        """SELECT count(*) FROM (SELECT 1 FROM temp.selected_capture AS s GROUP BY s.rank, s.labels
           HAVING count(*) > 1)""",
    )
    return captures.told_apart(captures.paths(connection)) if alike or "capture" in filters.by else {}


def _label_words(connection: duckdb.DuckDBPyConnection, varying: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what a table shows of each value of the varying labels, whichever of its rows come first."""
    found = {}
    for key in varying:
        values = _texts(
            connection,
            f"SELECT DISTINCT {label('s', key)} AS value FROM temp.selected_capture AS s WHERE value IS NOT NULL",
        )
        found[key] = dict(zip(values, tell_apart([visible(value) for value in values]), strict=True))
    return found


def _numbers(connection: duckdb.DuckDBPyConnection, filters: Filters) -> tuple[str, ...]:
    """Return the numbers of the captures that ``--capture`` and ``--path`` leave. Raises as ``select`` does."""
    chosen = captures.numbers(connection, filters.captures)
    if filters.paths:
        matching = captures.matching(connection, filters.paths)
        chosen = tuple(number for number in matching if not chosen or number in chosen)
        if not chosen:
            raise NotCaptured(f"no capture matches all of {described(filters)}")
    return tuple(map(str, chosen))


def _where(
    connection: duckdb.DuckDBPyConnection, where: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    r"""Return labels with the values of comma lists one by one.

    A value that some capture has is left whole though it holds a comma; so is one whose commas are written ``\,``.
    """
    found = {}
    for key, texts in where.items():
        there = _texts(connection, f"SELECT DISTINCT {label('c', key)} FROM main.capture AS c") if texts else []
        values = [value for text in texts for value in ([text] if text in there else _listed_values(text))]
        found[key] = tuple(dict.fromkeys(value for value in values if value or value in there))
    return found


def _listed_values(text: str) -> list[str]:
    return [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]


def _scalar(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    ((value,),) = shared_work.ask(connection, query)
    return int(value or 0)


def _texts(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [str(row[0]) for row in shared_work.ask(connection, query)]


def label_keys(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the label keys of all captures."""
    return _texts(connection, "SELECT DISTINCT unnest(map_keys(c.labels)) AS key FROM main.capture AS c ORDER BY key")


def _check_keys(connection: duckdb.DuckDBPyConnection, filters: Filters) -> None:
    asked = [*filters.where, *(name for name in filters.by if name not in BY_BUILT_IN)]
    if not asked:
        return
    keys = label_keys(connection)
    for key in asked:
        if key in keys:
            continue
        there = f"label keys here: {', '.join(keys)}" if keys else "no capture here has labels"
        if key in filters.where:
            raise UsageError(f"no capture has a label {key!r}; {there}")
        raise UsageError(f"cannot group by {key!r}: {there}; and always: {', '.join(BY_BUILT_IN)}")


def _single_conditions(filters: Filters) -> list[tuple[str, str, str]]:
    """Return (words, condition, column to list) of each filter value that some capture must have."""
    found = [(f"rank {rank}", f"c.rank = {rank}", "c.rank") for rank in filters.ranks]
    found += [(f"source {name}", f"c.source = {quoted(name)}", "c.source") for name in filters.sources]
    for key, values in filters.where.items():
        column = label("c", key)
        found += [(f"{key}={value}", f"{column} = {quoted(value)}", column) for value in values]
    return found


def _check_one(connection: duckdb.DuckDBPyConnection, text: str, condition: str, column: str) -> None:
    if _scalar(connection, f"SELECT count(*) FROM main.capture AS c WHERE {condition}"):
        return
    values = _texts(
        connection,
        f"""SELECT value FROM (SELECT DISTINCT {column}::VARCHAR AS value FROM main.capture AS c)
            WHERE value IS NOT NULL ORDER BY {natural("value")}""",
    )
    raise NotCaptured(f"no capture has {text}; there are: {_listed(values)}")


def _listed(values: Sequence[str], most: int = 20) -> str:
    """Return values in words; consecutive integers as a span."""
    if not values:
        return "none"
    spans: list[list[str]] = []
    for value in values:
        if spans and value.isdigit() and spans[-1][-1].isdigit() and int(value) == int(spans[-1][-1]) + 1:
            spans[-1] = [spans[-1][0], value]
        else:
            spans.append([value])
    texts = ["\N{EN DASH}".join(span) for span in spans]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _check_devices(connection: duckdb.DuckDBPyConnection, filters: Filters) -> None:
    if not filters.devices:
        return
    there = _texts(
        connection,
        """SELECT DISTINCT e.device_id FROM main.kernel_event AS e SEMI JOIN temp.selected_capture AS s
           ON s.capture_id = e.capture_id WHERE e.device_id IS NOT NULL ORDER BY e.device_id""",
    )
    for device in filters.devices:
        if str(device) not in there:
            raise NotCaptured(f"no GPU activity on device {device}; there are: {_listed(there)}")


def _check_classes(connection: duckdb.DuckDBPyConnection, filters: Filters, version: str) -> None:
    if not filters.classes:
        return
    there = _texts(
        connection,
        f"""SELECT DISTINCT e.class FROM {version}._timed_event AS e SEMI JOIN temp.selected_capture AS s
           ON s.capture_id = e.capture_id ORDER BY e.class""",
    )
    for name in filters.classes:
        if not name.removeprefix("!"):
            raise UsageError("--class takes the name of a class, as in --class matmul or --class '!matmul'")
        if name.removeprefix("!") not in there:
            close = difflib.get_close_matches(name.removeprefix("!"), there, 1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise NotCaptured(f"no GPU activity of class {name.removeprefix('!')}; {meant}there are: {_listed(there)}")


def _check_steps(connection: duckdb.DuckDBPyConnection, filters: Filters, version: str) -> None:
    if not filters.skip_warmup and "step" not in filters.by and filters.step_range is None:
        return
    steps = _scalar(
        connection,
        f"""SELECT max(t.step_index) FROM {version}._step AS t
            SEMI JOIN temp.selected_capture AS s ON s.capture_id = t.capture_id""",
    )
    if not steps and filters.step_range is not None:
        there = step_ranges.names(connection, version, "temp.selected_capture")
        raise NotCaptured(step_ranges.absent(f"--step-range {filters.step_range!r}", there))
    if not steps:
        raise NotCaptured(
            "no steps are marked (ranges named ProfilerStep#N), so steps cannot be skipped or grouped; --step-range "
            "GLOB uses other ranges as steps"
        )
    if steps <= filters.skip_warmup:
        most = "1 step" if steps == 1 else f"{steps} steps"
        raise NotCaptured(f"--skip-warmup {filters.skip_warmup} leaves nothing: no capture has more than {most}")


def _are_frames(connection: duckdb.DuckDBPyConnection, filters: Filters, version: str) -> bool:
    """Whether the patterns of --range match Python frames instead of ranges. Raises ``NotCaptured`` if neither."""
    found = {pattern: _has_range(connection, pattern, version) for pattern in filters.range}
    absent = [pattern for pattern, is_range in found.items() if not is_range]
    if absent and all(_has_frame(connection, pattern) for pattern in absent):
        if len(absent) < len(found):
            raise UsageError(f"--range {absent[0]!r} matches Python frames, the others match ranges; ask for one kind")
        return True
    names = step_ranges.names(connection, version, "temp.selected_capture")
    if not names:
        raise NotCaptured("no ranges (NVTX, roctx, record_function) were captured")
    if absent:
        raise NotCaptured(step_ranges.absent(repr(absent[0]), names))
    return False


def _listed_ranges(connection: duckdb.DuckDBPyConnection, patterns: Sequence[str], version: str) -> tuple[str, ...]:
    r"""Return --range patterns with comma lists one by one, unless a range or frame has the name with its comma."""
    found: list[str] = []
    for text in patterns:
        is_list = "," in text and not _has_range(connection, text, version) and not _has_frame(connection, text)
        found += [value for value in _listed_values(text) if value] if is_list else [text]
    return tuple(dict.fromkeys(found))


def _has_range(connection: duckdb.DuckDBPyConnection, pattern: str, version: str) -> bool:
    condition = named("r.name", "r.domain", [pattern])
    return bool(
        _scalar(
            connection,
            f"""SELECT count(*) FROM {version}._range AS r SEMI JOIN temp.selected_capture AS s
                ON s.capture_id = r.capture_id WHERE {condition}""",
        )
    )


def _has_frame(connection: duckdb.DuckDBPyConnection, pattern: str) -> bool:
    return bool(
        _scalar(
            connection,
            f"""SELECT count(*) FROM main.frame AS f SEMI JOIN temp.selected_capture AS s
                ON s.capture_id = f.capture_id WHERE f.name GLOB {quoted(pattern)}""",
        )
    )


def _check_launches(connection: duckdb.DuckDBPyConnection, rule: str) -> None:
    """Raise ``NotCaptured`` if it is not known which frames launched GPU work."""
    if rule == "time":
        raise NotCaptured("--rule time is for ranges; Python frames hold what was launched inside them")
    launched = _scalar(
        connection,
        """SELECT count(*) FROM main.kernel_event AS e SEMI JOIN temp.selected_capture AS s
           ON s.capture_id = e.capture_id WHERE e.launch_id IS NOT NULL""",
    )
    if not launched:
        raise NotCaptured("--range matches Python frames, but no launches were captured, so what they hold is unknown")


def _varying(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    return tuple(
        _texts(
            connection,
            """WITH entry AS (SELECT s.capture_id, unnest(map_entries(s.labels)) AS pair
                              FROM temp.selected_capture AS s),
                    total AS (SELECT count(*) AS captures FROM temp.selected_capture)
               SELECT pair.key FROM entry, total GROUP BY pair.key, captures
               HAVING count(DISTINCT pair.value) > 1 OR count(*) < captures
               ORDER BY CASE pair.key WHEN 'sweep' THEN 0 WHEN 'threads' THEN 1 WHEN 'channels' THEN 2 ELSE 3 END,
                        pair.key""",
        )
    )
