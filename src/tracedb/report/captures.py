"""Select captures by number, or by the part of their path that identifies them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured, UsageError
from tracedb.output.shorten import paths_apart, runs
from tracedb.storage import resources

if TYPE_CHECKING:
    import duckdb

SHOWN = 8
"""Number of captures listed if a choice is ambiguous or empty."""
CAPTURE_OPTION = "--capture"
"""The option that chooses captures to read."""


def paths(connection: duckdb.DuckDBPyConnection, catalog: str = "") -> dict[int, str]:
    """Return the path of every capture by its number; ``catalog``: of an attached database, with its dot."""
    rows = connection.execute(f"SELECT capture_id, coalesce(path, '') FROM {catalog}main.capture ORDER BY capture_id")
    return {int(number): str(path) for number, path in rows.fetchall()}


def told_apart(found: Mapping[int, str]) -> dict[int, str]:
    """Return for each capture what tells its path apart (``paths_apart``).

    Captures of one path (several processes in a file, a file loaded twice) share it.
    """
    names = paths_apart(found.values())
    return {number: names[path] for number, path in found.items()}


def some_of(paths: Sequence[str | None], most: int = 3) -> str:
    """Return the first few paths by their last two parts, or by as many as make them distinct."""
    parts = [_parts(path) if path else ("?",) for path in paths]
    length, longest = 2, max(map(len, parts), default=0)
    while length < longest and len({each[-length:] for each in parts}) < len(set(parts)):
        length += 1
    short = list(dict.fromkeys("/".join(each[-length:]) for each in parts))
    return ", ".join(short[:most]) + (f" and {len(short) - most} more" if len(short) > most else "")


def chosen(found: Mapping[int, str], text: str, option: str = CAPTURE_OPTION) -> list[int]:
    """Return the captures a word selects: a number, a part of one path, or a pattern of paths.

    A number that no capture has is looked for among the numbers in paths, as rocprofv3 names its files after process
    ids; commands that change captures (another ``option``) take it for a number only. Whole names of folders and files
    are tried first, then a pattern, then any substring of a path. ``option`` is named in errors. Raises ``UsageError``
    if no capture matches, or several match anything but a pattern.
    """
    if text.isdecimal() and int(text) in found:
        return [int(text)]
    if text.isdecimal():
        matching = _of_number_in_name(found, text) if option == CAPTURE_OPTION else []
        if not matching:
            raise UsageError(f"{option} {text}: no capture has this number; there are: {_listed(found, found)}")
    else:
        matching = _of_whole_names(found, text)
    if not matching:
        matching = _of_pattern(found, text)
        if matching:
            return matching
    matching = matching or _of_piece(found, text)
    if not matching:
        raise UsageError(f"{option} {text}: no capture has it in its path; there are: {_listed(found, found)}")
    if len(matching) > 1:
        raise UsageError(f"{option} {text}: {len(matching)} captures match: {_listed(found, matching)}")
    return matching


def all_meant(found: Mapping[int, str], text: str) -> list[int]:
    """Return all captures that a word selects.

    Whole names of folders and files are tried first, then a number, then a pattern, then any substring of a path.
    """
    numbered = [int(text)] if text.isdecimal() and int(text) in found else []
    return _of_whole_names(found, text) or numbered or _of_pattern(found, text) or _of_piece(found, text)


def _of_whole_names(found: Mapping[int, str], text: str) -> list[int]:
    wanted = _parts(text)
    return [number for number, path in found.items() if wanted and wanted in runs(_parts(path), len(wanted))]


def _of_number_in_name(found: Mapping[int, str], text: str) -> list[int]:
    """Return the captures with this number, not part of a longer one, in the name of a folder or file."""
    return [number for number, path in found.items() if re.search(rf"(?<!\d){text}(?!\d)", path)]


def _of_pattern(found: Mapping[int, str], text: str) -> list[int]:
    if not any(sign in text for sign in "*?["):
        return []
    whole = [number for number, path in found.items() if _matches(path, text)]
    return whole or [number for number, path in found.items() if _matches_across(path, text)]


def _of_piece(found: Mapping[int, str], text: str) -> list[int]:
    return [number for number, path in found.items() if text and text in path]


def numbers(
    connection: duckdb.DuckDBPyConnection, texts: Sequence[str], option: str = CAPTURE_OPTION
) -> tuple[int, ...]:
    """Return the captures that any of the words selects; see ``chosen``. Raises ``UsageError``."""
    if not texts:
        return ()
    found = paths(connection)
    return tuple(sorted({number for text in texts for number in chosen(found, text, option)}))


def matching(connection: duckdb.DuckDBPyConnection, patterns: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the captures whose path any of the patterns matches. Raises ``NotCaptured``.

    A pattern matches a whole path, or a run of whole names of folders and files in it; where none does, its ``*`` may
    stand for several folders.
    """
    found = paths(connection)
    chosen: set[int] = set()
    for pattern in patterns:
        those = [number for number, path in found.items() if fnmatchcase(path, pattern) or _matches(path, pattern)]
        those = those or [number for number, path in found.items() if _matches_across(path, pattern)]
        if not those:
            raise NotCaptured(
                f"no capture has a path that --path {pattern!r} matches; there are: {_listed(found, found)}"
            )
        chosen.update(those)
    return tuple(sorted(chosen))


def statement(those: Sequence[object]) -> str:
    """Return the statement that restricts the matching of ranks to these captures (``v1._capture_set``)."""
    return f"SET VARIABLE captures = [{', '.join(map(str, those))}]"


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in PurePath(path).parts if part != "/")


def _matches(path: str, pattern: str) -> bool:
    """Whether a pattern matches the path from some folder on, up to its end or the end of a folder."""
    parts = _parts(path)
    length = len(_parts(pattern))
    return any(fnmatchcase("/".join(run), pattern.strip("/")) for run in runs(parts, length))


def _matches_across(path: str, pattern: str) -> bool:
    """Whether a pattern matches from some folder to the end of one, if its ``*`` may stand for several."""
    parts, wanted = _parts(path), pattern.strip("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    return any(fnmatchcase(end, wanted) or fnmatchcase(end, f"{wanted}/*") for end in ends)


def _listed(found: Mapping[int, str], those: Sequence[int] | Mapping[int, str]) -> str:
    names = told_apart(found)
    shown = [f"{number} {names[number]}".rstrip() for number in list(those)[:SHOWN]]
    more = f" and {len(those) - SHOWN} more" if len(those) > SHOWN else ""
    return (", ".join(shown) + more) or "none"


def facts(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str | None]]:
    """Return what the captures in ``temp.selected_capture`` have in common, in words."""
    rows = connection.execute(resources.text("sql", "page", "facts.sql")).fetchall()
    return [(str(fact), None if value is None else str(value)) for fact, value in rows]
