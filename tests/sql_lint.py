"""The rules of ``sql/README.md``, checked on text: ``python tests/sql_lint.py`` prints every fault at once.

What only DuckDB can tell (types, comments of columns, whether a view runs) is checked in ``test_views.py``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from tracedb.output import units

SQL = Path(__file__).resolve().parents[1] / "sql"
SNAKE = re.compile(r"[a-z_][a-z0-9_]*")
LOWER_KEYWORD = re.compile(
    r"\b(select|from|where|and|or|not|as|on|inner|full|cross|join|group|order|by|over|partition|between|case|when"
    r"|then|else|with|recursive|union|intersect|except|distinct|in|is|null|like|create|view|having|qualify|asof|using"
    r"|limit|offset|desc|asc)\b"
)
SKIPPED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
DEVIATION = re.compile(r"\b((?:stddev|var)(?:_samp|_pop)?)\([^()]*\)")
BLOCK_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
HOOK = re.compile(
    r" (?:join \w+|filter \w+|by \w+|by|partition|using \w+ \w+(?: base)?|matmul|rule|inline"
    r"|grain|end grain|case|end case"
    r"|whole|part [^*]+) "
)
OF_PEER = re.compile(r"-- The report \w+ of (?:nsys stats|HTA|TraceLens)\b")
TABLE_FUNCTIONS = ("UNNEST", "RANGE", "GENERATE_SERIES")


@dataclass(frozen=True)
class ViewFile:
    """A file of a view version: its text and what it parses to."""

    path: Path

    @property
    def version(self) -> str:
        """The name of the folder around its topic's."""
        return self.path.parents[1].name

    @property
    def name(self) -> str:
        """The file's name, which must be the view's."""
        return self.path.stem

    @property
    def text(self) -> str:
        """The whole file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def is_macro(self) -> bool:
        """Whether it creates a macro, an expression that views share."""
        return "\nCREATE MACRO " in self.text

    @property
    def is_private(self) -> bool:
        """Whether the view belongs to the inside of its version."""
        return self.name.startswith("_")


def view_files(root: Path = SQL) -> list[ViewFile]:
    """Return the files of all versions."""
    return [ViewFile(path) for path in sorted(root.glob("v*/*/*.sql"))]


@cache
def parsed(text: str) -> list[Any]:
    """Return the statements of a file. Raises sqlglot's ``ParseError`` or ``TokenError``."""
    return [statement for statement in sqlglot.parse(text, read="duckdb") if statement is not None]


def _plain(path: Path) -> str:
    """Return the text of a file with words for the places that ``tracedb compare`` and ``tracedb plot`` fill."""
    return re.sub(r"\{(\w+)\}", r"\1", path.read_text(encoding="utf-8"))


def faults(root: Path = SQL) -> list[str]:
    """Return every fault of every file, each with its place."""
    tables: set[str] = set()
    found: list[str] = []
    schemas = root.parent / "schemas"
    for path in sorted(schemas.glob("v*/*.sql")):
        tables |= _tables(path)
        found += [
            f"schemas/{path.relative_to(schemas)}: {text}" for text in unit_faults(path.read_text(encoding="utf-8"))
        ]
    rooms = ("compare", "derive", "export", "page", "plot")
    for path in sorted(path for room in rooms for path in (root / room).glob("*.sql")):
        found += [f"{path.parent.name}/{path.name}: {text}" for text in _text_faults(_plain(path))]
    files = view_files(root)
    for view in files:
        found += [
            f"{view.version}/{view.path.parent.name}/{view.path.name}: {text}" for text in _view_faults(view, tables)
        ]
    for version in sorted({view.version for view in files}):
        found += _set_faults(root / version, [view for view in files if view.version == version])
    return found


def _tables(schema: Path) -> set[str]:
    return set(re.findall(r"CREATE TABLE main\.(\w+)", schema.read_text(encoding="utf-8")))


def _text_faults(text: str) -> Iterator[str]:
    if not text.startswith("--"):
        yield "does not begin with a -- header"
    bare = SKIPPED.sub(lambda match: " " * len(match[0]), text)
    for match in LOWER_KEYWORD.finditer(bare):
        yield f"line {_line(text, match.start())}: keyword {match[0]!r} is not in upper case"
    for match in DEVIATION.finditer(bare):
        if "ORDER BY" not in match[0]:
            yield f"line {_line(text, match.start())}: {match[1]} depends on the row order; use v1._sample_stddev"
    if re.search(r"[ \t]+$|\t", text, re.MULTILINE) or not text.endswith("\n"):
        yield "holds a tab, spaces at the end of a line, or no line end at its end"
    try:
        parsed(text)
    except (sqlglot.errors.ParseError, sqlglot.errors.TokenError) as error:
        yield f"does not parse: {str(error).splitlines()[0]}"


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _view_faults(view: ViewFile, tables: set[str]) -> Iterator[str]:
    faulty = list(_text_faults(view.text))
    yield from faulty
    if any(fault.startswith("does not parse") for fault in faulty):
        return
    header = view.text.partition("CREATE VIEW")[0]
    if view.is_macro:
        if not view.is_private:
            yield "is a macro with a public name"
        if not re.search(rf"COMMENT ON MACRO {view.version}\.{view.name} IS '[A-Z]", view.text):
            yield "has no COMMENT ON MACRO"
    elif "Grain" not in header and not re.search(r"COMMENT ON VIEW .*Grain: ", view.text):
        yield "neither header nor comment says its grain"
    yield from _hook_faults(view.text)
    created = [statement for statement in parsed(view.text) if isinstance(statement, exp.Create)]
    others = [statement for statement in parsed(view.text) if not isinstance(statement, exp.Create | exp.Comment)]
    if others or len(created) != 1 or created[0].kind not in ("VIEW", "MACRO") or created[0].args.get("replace"):
        yield "holds something other than one CREATE VIEW or CREATE MACRO and comments on it"
        return
    target = created[0].this.find(exp.Table)
    if target is None or (target.db, target.name) != (view.version, view.name):
        yield f"creates {target.sql() if target else 'nothing'}, not {view.version}.{view.name}"
    yield from _query_faults(created[0].expression, view, tables)
    yield from _comment_faults(view)


def _hook_faults(text: str) -> Iterator[str]:
    comments = BLOCK_COMMENT.findall(re.sub(r"--[^\n]*", "", text))
    for comment in comments:
        if not HOOK.fullmatch(comment):
            yield f"/*{comment}*/ is no hook; write -- for a comment"
    grains = [comment.strip() for comment in comments if "grain" in comment]
    if grains != ["grain", "end grain"] * (len(grains) // 2):
        yield "/* grain */ and /* end grain */ do not come in pairs"


def _query_faults(query: Any, view: ViewFile, tables: set[str]) -> Iterator[str]:
    if query.args.get("order") or query.args.get("limit"):
        yield "orders or limits at the top; that is the caller's"
    names = {cte.alias for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            if table.this.sql().partition("(")[0].upper() not in TABLE_FUNCTIONS:
                yield f"reads from the function {table.this.sql()}"
        elif not table.db:
            if table.name not in names:
                yield f"{table.name} is not qualified"
        elif table.db == "main":
            if table.name not in tables:
                yield f"main.{table.name} is no table"
        elif table.db != view.version:
            yield f"{table.db}.{table.name} is of another version"
    for cte in query.find_all(exp.CTE):
        if cte.args.get("materialized") is not None:
            yield f"says whether {cte.alias} is materialized, which a stored view forgets"
    for join in query.find_all(exp.Join):
        if join.args.get("method") == "ASOF" and join.args["on"].find(exp.NullSafeEQ):
            yield "joins ASOF by IS NOT DISTINCT FROM, which DuckDB 1.4 and 1.5 get wrong; use v1._asof_key"
    for select in query.find_all(exp.Select):
        for item in select.expressions:
            if (item.is_star or item.find(exp.Columns)) and not _passes_through(item, select, view):
                yield f"selects {item.sql(dialect='duckdb')}; name the columns"
    for name in names | {item.alias for item in query.find_all(exp.Alias)}:
        if not SNAKE.fullmatch(name) and not OF_PEER.match(view.text):
            yield f"{name!r} is not in lower snake case"


def _passes_through(item: Any, select: Any, view: ViewFile) -> bool:
    """Whether an item takes all columns of a step or of a private view, in a private view."""
    if not view.is_private or not isinstance(item, exp.Column) or not item.table:
        return False
    sources = {table.alias_or_name: table for table in select.find_all(exp.Table)}
    source = sources.get(item.table)
    return source is not None and source.db != "main" and (not source.db or source.name.startswith("_"))


def _comment_faults(view: ViewFile) -> Iterator[str]:
    """Comments must be on this view; a public one says first what it is, then its grain."""
    for target in re.findall(r"COMMENT ON (?:VIEW|COLUMN|MACRO) ([\w.]+)", view.text):
        if not f"{target}.".startswith(f"{view.version}.{view.name}."):
            yield f"comments on {target}"
    if view.is_private:
        return
    yield from unit_faults(view.text)
    said = re.search(r"COMMENT ON VIEW [\w.]+ IS\s+'((?:[^']|'')*)'", view.text)
    if said is None:
        yield "has no COMMENT ON VIEW"
    elif not re.fullmatch(r"[A-Z].*[.?] Grain: [^.]+\.(?: .*\.)?", said[1], re.DOTALL):
        yield f"its comment is not `Sentence. Grain: …`: {said[1]!r}"


def unit_faults(text: str) -> Iterator[str]:
    """Comments on columns declare units that there are, and all columns whose name tells a unit declare one."""
    for name, said in re.findall(r"COMMENT ON COLUMN \w+\.\w+\.(\w+|\"[^\"]+\") IS\s+'((?:[^']|'')*)'", text):
        _, unit = units.declared(said)
        if unit is None and (other := re.search(r"\[\S+\]$", said)):
            yield f"{name} declares {other[0]}, which is no unit; there are: {', '.join(units.UNITS)}"
        elif unit is None and units.by_name(name):
            yield f"{name} declares no unit, as [{units.by_name(name)}] at the end of its comment"


def needs(view: ViewFile) -> set[str]:
    """Return the names of the views and macros of its version that a view reads."""
    created = [statement.expression for statement in parsed(view.text) if isinstance(statement, exp.Create)]
    tables = {table.name for text in created for table in text.find_all(exp.Table) if table.db == view.version}
    calls = {
        call.expression.name for text in created for call in text.find_all(exp.Dot) if call.this.name == view.version
    }
    return tables | calls


def _set_faults(folder: Path, files: Sequence[ViewFile]) -> Iterator[str]:
    """A view stands in one topic only, and views do not read each other in a circle."""
    names = [view.name for view in files]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{folder.name}: {name} stands in several topics"
    for path in sorted(folder.glob("*.sql")):
        yield f"{folder.name}/{path.name}: stands in no topic's folder"
    try:
        wanted = {view.name: needs(view) for view in files}
    except (sqlglot.errors.ParseError, sqlglot.errors.TokenError):
        return
    right = sorted_by_needs(wanted)
    if len(right) < len(wanted):
        yield f"{folder.name}: views read each other in a circle: {sorted(set(wanted) - set(right))}"


def sorted_by_needs(wanted: dict[str, set[str]]) -> list[str]:
    """Return names after all that they need, else by the alphabet; those in a circle are left out."""
    order: list[str] = []
    left = dict(wanted)
    while ready := sorted(name for name, others in left.items() if not others & set(left)):
        order.append(ready[0])
        del left[ready[0]]
    return order


if __name__ == "__main__":
    lines = faults()
    print("\n".join(lines) or f"{len(view_files())} views, no fault")
    sys.exit(1 if lines else 0)
