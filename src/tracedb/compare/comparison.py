"""Compare runs: each side's work per unit against a baseline, in SQL (``sql/compare``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from tracedb.compare import entry_names
from tracedb.compare.columns import MEANINGS, SHOWS
from tracedb.compare.gates import KINDS, Gate, Verdict, judge
from tracedb.errors import NotCaptured, UsageError
from tracedb.output import Answer, from_sql
from tracedb.report import captures, step_ranges, time_caveats, view_template
from tracedb.report.filters import Filters, capture_conditions, one_of
from tracedb.storage import resources, views
from tracedb.storage.connection import (
    give_access,
    in_memory,
    open_read_only,
    plan_for_size,
    quoted,
    sized_file,
    use,
)
from tracedb.storage.lake_store import is_lake
from tracedb.storage.spill_folder import spill_folder

_BY_SIZE = "abs(difference_mean_ns) DESC, name"


@dataclass(frozen=True)
class Side:
    """One of the runs: its name, its database, and the condition on its captures ``c``."""

    name: str
    database: Path
    captures: str


@dataclass(frozen=True)
class Steps:
    """The compared steps: all but the first ``skip`` of those marked, or of the ranges of a given name."""

    skip: int = 0
    range: str | None = None


def side(text: str, db: Path) -> Side:
    """Resolve a word to a side: a database file, ``KEY=VALUE[,KEY=VALUE]``, or captures by path or number."""
    path = Path(text)
    if is_lake(path) or (path.is_file() and _is_database(path)):
        return Side(text, path, "true")
    if path.is_file() and not db.is_file():
        raise UsageError(
            f"{text}: not a tracedb database; if it is a trace, ingest it first (tracedb ingest {text}): there is no "
            f"{db} to look it up in"
        )
    if "=" in text and not path.exists():
        where: dict[str, tuple[str, ...]] = {}
        for pair in text.split(","):
            key, _, value = pair.partition("=")
            where[key] = (*where.get(key, ()), value)
        keys = {"rank": Filters(ranks=tuple(_rank(value) for value in where.pop("rank", ()))), "": Filters(where=where)}
        return Side(text, db, " AND ".join(item for part in keys.values() for item in capture_conditions(part, "c")))
    if not is_lake(db) and not db.exists():
        raise UsageError(f"{text}: no such database, and there is no {db} to look it up in as a capture")
    with open_read_only(db) as connection:
        those = captures.all_meant(captures.paths(connection), text)
    return Side(text, db, one_of("c.capture_id", those) if those else "false")


def capture_sides(texts: Sequence[str], db: Path) -> list[Side]:
    """Return a side for each choice of captures (see ``captures.chosen``). Raises ``UsageError``."""
    if not texts:
        return []
    with open_read_only(db) as connection:
        chosen = [captures.numbers(connection, [text]) for text in texts]
    return [Side(text, db, one_of("c.capture_id", those)) for text, those in zip(texts, chosen, strict=True)]


def _rank(text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"rank={text}: a rank is a number")
    return int(text)


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


class _Script:
    """Runs the statements of a comparison, and keeps them as a text that a DuckDB shell can run."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
        self.connection = connection
        self.texts = texts

    def run(self, statement: str) -> None:
        self.connection.execute(statement)
        self.texts.append(statement.rstrip().removesuffix(";") + ";")

    def fill(self, name: str, **places: str) -> None:
        """Run ``sql/compare/NAME.sql`` with the words in braces filled in."""
        text = resources.text("sql", "compare", f"{name}.sql")
        for place, sql in places.items():
            text = text.replace("{" + place + "}", sql)
        self.run(text)


@contextmanager
def compared(
    sides: Sequence[Side], baseline: int, steps: Steps, statements: list[str] | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the databases and fill ``temp.answer``. Raises ``NotCaptured`` if a side has no kernels.

    ``statements`` receives what ran: a DuckDB shell in the folder of the databases that runs it has ``answer``, too.
    """
    paths = list(dict.fromkeys(item.database for item in sides))
    with spill_folder(paths[0], or_elsewhere=True) as spill, in_memory({"temp_directory": spill}) as connection:
        script = _Script(connection, [] if statements is None else statements)
        files = [sized_file(path, spill, f"lake_{number}") for number, path in enumerate(paths)]
        plan_for_size(connection, files)
        give_access(connection, paths)
        for number, (path, (file, _)) in enumerate(zip(paths, files, strict=True)):
            use(connection, path, file, f"side_{number}")
            script.texts.append(f"ATTACH {quoted(path.name)} AS side_{number} (READ_ONLY);")
        connection.execute("USE memory")
        connection.execute("SET enable_external_access = false")
        step_ranges.choose(connection, steps.range)
        if steps.range is not None:
            script.texts.append(step_ranges.statement(steps.range) + ";")
        script.fill("tables")
        for number, item in enumerate(sides):
            script.run(f"INSERT INTO side_name VALUES ({number}, {quoted(item.name)})")
            database = f"side_{paths.index(item.database)}"
            script.fill("setting", db=database, side=str(number), captures=item.captures)
        script.fill("left_out")
        for number, item in enumerate(sides):
            _fill(script, number, item, steps, f"side_{paths.index(item.database)}")
        for text in views.macros("_mann_whitney_u", "_mann_whitney_p"):
            script.run(text)
        script.fill("answer", baseline=str(baseline))
        script.fill("likeness", baseline=str(baseline))
        script.fill("evidence")
        script.fill("gist")
        yield connection


def _fill(script: _Script, number: int, item: Side, steps: Steps, database: str) -> None:
    """Add a side's values to the tables."""
    script.fill("side", db=database, side=str(number), captures=item.captures, skip=str(steps.skip))
    _check(script.connection, number, item, steps, database)
    script.fill("facts", db=database, side=str(number))
    for text in time_caveats.said(script.connection, f"{database}.", "temp.side_capture"):
        script.connection.execute("INSERT INTO side_warning VALUES (?, ?)", [number, f"{item.name}: {text}"])
    timeline = _timeline(script.connection, steps, database)
    script.fill("timeline", timeline=timeline, db=database, side=str(number))


def _timeline(connection: duckdb.DuckDBPyConnection, steps: Steps, database: str) -> str:
    """Return the SELECT of ``v1.gpu_timeline`` over the side's events, by unit."""
    ((by_step,),) = connection.execute("SELECT by_step FROM side_marked").fetchall()
    kept = ["e.capture_id IN (SELECT c.capture_id FROM temp.side_capture AS c)"]
    joins = {}
    if by_step:
        joins["e"] = (
            "INNER JOIN v1._step_kernel AS e_step ON e_step.capture_id = e.capture_id AND e_step.event_id = e.event_id"
        )
        kept.append(f"e_step.step_index > {steps.skip}")
    unit = view_template.By(
        "unit", lambda base: f"{base}.capture_id" + (" || '/' || e_step.step" if by_step else "::VARCHAR")
    )
    part = views.View(views.CURRENT, "_reached_event").select if by_step else None
    edits = view_template.Edits([unit], {"e": kept}, joins, part=part)
    text = view_template.resolve(views.find("gpu_timeline").select, edits)
    return re.sub(r"\b(main|v\d+)\.", rf"{database}.\1.", text)


def _check(connection: duckdb.DuckDBPyConnection, number: int, item: Side, steps: Steps, database: str) -> None:
    """Raise ``NotCaptured`` if a side has nothing to compare."""
    ((captures, units),) = connection.execute(
        "SELECT (SELECT count(*) FROM side_capture), (SELECT count(*) FROM side_unit WHERE side = ?)", [number]
    ).fetchall()
    ((of, without),) = connection.execute("SELECT captures, without_steps FROM side_marked").fetchall()
    if not captures:
        raise NotCaptured(
            f"{item.name}: no capture of {item.database} matches; a side is a database file, KEY=VALUE of labels, "
            "a part of a capture's path or its number"
        )
    if without and steps.range is not None:
        there = step_ranges.names(connection, f"{database}.{views.CURRENT}", "temp.side_capture")
        words = step_ranges.absent(f"--step-range {steps.range!r}", there)
        raise NotCaptured(f"{item.name}: in {without} of {of} captures {words}")
    if not units:
        left = f" after {steps.skip} steps of warm-up" if steps.skip else ""
        raise NotCaptured(f"{item.name}: no kernels were captured{left}")


def select(kinds: Sequence[str], top: int) -> str:
    """Return the SELECT of the rows of some kinds, ``top`` of each side and kind; 0 is all."""
    order = " ".join(f"WHEN {quoted(kind)} THEN {place}" for place, kind in enumerate(KINDS))
    limit = f"QUALIFY row_number() OVER (PARTITION BY side_number, kind ORDER BY {_BY_SIZE}) <= {top}\n" if top else ""
    return (
        f"SELECT * EXCLUDE (side_number)\nFROM temp.answer\nWHERE kind IN ({_listed(kinds)})\n{limit}"
        f"ORDER BY side, side_number, CASE kind {order} END, {_BY_SIZE}"
    )


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(quoted(kind) for kind in kinds or KINDS)


def kinds_for_eyes(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the kinds without ``gemm`` where no shapes were recorded: its rows are then those of kind ``kernel``."""
    ((has_shapes,),) = connection.execute(
        """SELECT EXISTS (
               SELECT 1 FROM temp.answer AS g WHERE g.kind = 'gemm'
                   AND NOT EXISTS (SELECT 1 FROM temp.answer AS k WHERE k.kind = 'kernel' AND k.name = g.name))"""
    ).fetchall()
    return [kind for kind in KINDS if kind != "gemm" or has_shapes]


def answer(connection: duckdb.DuckDBPyConnection, kinds: Sequence[str], top: int) -> Answer:
    """Return the rows, by side and kind, the largest differences first."""
    listed = _listed(kinds)
    ((rows, shown),) = connection.execute(
        f"""SELECT coalesce(sum(rows), 0), coalesce(sum(least(rows, {top})), 0)
            FROM (SELECT count(*) AS rows FROM temp.answer WHERE kind IN ({listed}) GROUP BY side_number, kind)"""
    ).fetchall()
    found = from_sql(connection, select(kinds, top), MEANINGS)
    found.report, found.shows = "compare", list(SHOWS)
    found.shows[2] = replace(found.shows[2], words=entry_names.words(connection))
    hidden = ["kind"] if len(kinds) == 1 else []
    ((others,),) = connection.execute("SELECT count(*) - 1 FROM temp.side_name").fetchall()
    hidden += ["side"] if others == 1 else []  # the same in each row
    ((parts,),) = connection.execute(
        f"SELECT count(*) FROM temp.answer WHERE kind IN ({listed}) AND by_calls_mean_ns <> 0"
    ).fetchall()
    hidden += [] if parts else ["by_calls_mean_ns", "by_time_mean_ns"]  # all of each difference is by time
    found.shows = [show for show in found.shows if show.columns[0] not in hidden]
    found.warnings = [text for _, text in remarks(connection)]
    if top and shown < rows:
        found.left_out = f"{shown} of {rows} rows, the {top} largest differences of each kind; --top 0 shows all"
    return found


def remarks(connection: duckdb.DuckDBPyConnection) -> list[tuple[bool, str]]:
    """Return how sides differ from the baseline in kind, and whether that makes them incomparable."""
    rows = connection.execute("SELECT is_incomparable, remark FROM temp.side_remark ORDER BY side, place").fetchall()
    return [(bool(is_incomparable), str(remark)) for is_incomparable, remark in rows]


def unit(connection: duckdb.DuckDBPyConnection) -> str:
    """Say what the values are means of."""
    ((some, every),) = connection.execute("SELECT bool_or(by_step), bool_and(by_step) FROM temp.side_fact").fetchall()
    if every:
        return "times are means per step of a rank"
    if some:
        return "times are means per unit: a step of a rank where steps are marked, else a capture"
    return "times are means per capture, as no steps are marked"


def about(connection: duckdb.DuckDBPyConnection, sides: Sequence[str], baseline: int) -> str:
    """Return what is compared with what."""
    others = [name for number, name in enumerate(sides) if number != baseline]
    now = f", now: {others[0]}" if len(others) == 1 else ""
    return f"baseline: {sides[baseline]}{now}; {unit(connection)}"


def tested(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return what the verdicts are about: runs, or steps of one run each."""
    rows = connection.execute("SELECT note FROM temp.side_evidence ORDER BY place").fetchall()
    return [str(text) for (text,) in rows]


def gist(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return what became of a step, or of the whole recording, a sentence for each side."""
    rows = connection.execute("SELECT said FROM temp.side_gist ORDER BY side").fetchall()
    return [str(text) for (text,) in rows]


def chosen(sides: Sequence[Side], db: Path) -> tuple[str, ...]:
    """Return the numbers of the captures of all sides, as --capture takes them; empty if a side is another database."""
    if any(item.database != db for item in sides):
        return ()
    with open_read_only(db) as connection:
        wanted = " OR ".join(f"({item.captures})" for item in sides)
        rows = connection.execute(f"SELECT c.capture_id FROM main.capture AS c WHERE {wanted} ORDER BY ALL").fetchall()
    return tuple(str(number) for (number,) in rows)


def warnings(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the caveats of the sides."""
    rows = connection.execute("SELECT warning FROM temp.side_warning ORDER BY side, warning").fetchall()
    return [str(text) for (text,) in rows]


def judged(
    connection: duckdb.DuckDBPyConnection, gates: Sequence[Gate], baseline: int, beyond_noise: bool
) -> list[Verdict]:
    """Return the verdict of each gate. ``beyond_noise``: growth counts only if the rank test agrees."""
    if beyond_noise and gates:
        _Script(connection, []).fill("noise", baseline=str(baseline))
    incomparable = next((text for is_incomparable, text in remarks(connection) if is_incomparable), "")
    return judge(connection, gates, incomparable, beyond_noise)
