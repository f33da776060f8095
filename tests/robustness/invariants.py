"""What must hold for every input: all ways of reading agree, event counts add up, and only rejections fail.

A way is a set of module variables that make a reader take a different path. Each format has its ways (see
``formats.py``).
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from support.readings import Reading, as_dicts, check, instance
from tracedb.errors import TracedbError
from tracedb.ingester import Capture, Ingester, Options, ReadAgain
from tracedb.ingester.native_library import CHOICE
from tracedb.storage import error_lines

MOST_GROWTH = 256 << 10
"""KiB by which reading one small input may raise the peak of memory."""
RAW_WORDS = re.compile(r"\n|INSERT INTO|SELECT |Conversion Error|Traceback|please report")
"""What no refusal may say."""


@dataclass(frozen=True)
class Way:
    """A way of reading: what differs from the usual one."""

    name: str
    patches: tuple[tuple[Any, str, Any], ...] = ()
    cores: int = 1
    is_python: bool = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have readers go this way."""
        with ExitStack() as stack:
            if self.is_python:
                stack.enter_context(mock.patch.dict(os.environ, {CHOICE: "python"}))
            for owner, name, value in self.patches:
                stack.enter_context(mock.patch.object(owner, name, value))
            yield


@dataclass
class Outcome:
    """What one way of reading gave: rows by table, or why it refused."""

    reading: Reading | None = None
    refused: str | None = None

    @property
    def state(self) -> str:
        """Return the status of the captures, or that there is none."""
        if self.reading is None:
            return "refused"
        return "+".join(sorted({str(row["status"]) for row in self.reading.captures}))

    def comparable(self) -> dict[str, list[str]] | str:
        """Return what all ways must agree in: rows in any order. Of refusals, that there is one."""
        if self.reading is None:
            return "refused"
        return {
            table: sorted(repr(sorted(_plain(row).items())) for row in rows)
            for table, rows in self.reading.tables.items()
            if rows
        }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row; an issue's parts in any order: they stand in the order in which they were met."""
    return {**row, "detail": sorted(str(row["detail"]).split("; "))} if "detail" in row else row


@dataclass
class Case:
    """One input: its files, how it came about, and what was found."""

    files: list[Path]
    ways: Sequence[Way]
    count: Callable[[], dict[str, int] | None] = lambda: None
    """Gives rows of kernels (and other kinds) by an independent reader, None where that cannot be told."""
    early: Callable[[Capture], tuple[str, list[str]]] | None = None
    """Compares what readers find of a capture before it is linked; gives its state, and what is wrong."""
    account: Callable[[], tuple[str, list[str]]] | None = None
    """Ingests the input into a database, and holds the account against another count; gives the same."""
    state: str = "not claimed"
    is_whole: bool = False
    """Whether it was read as a whole, too."""
    is_accounted: bool = False
    """Whether it was ingested, and its account was held against another count."""
    is_warned: bool = False
    wrong: list[str] = field(default_factory=list)


def judge(ingester: Ingester, case: Case) -> None:
    """Read an input in all its ways, and put down in it what is wrong."""
    before = _peak()
    try:
        captures = list(ingester.find(case.files))
    except Exception as error:  # noqa: BLE001 - finding files may raise nothing
        case.wrong.append(f"find raised {type(error).__name__}: {error}")
        return
    for capture in captures:
        if case.early is not None:
            try:
                case.state, wrong = case.early(capture)
                case.wrong += wrong
            except Exception as error:  # noqa: BLE001 - as above
                case.wrong.append(f"before DuckDB: raised {error_lines.one_line(error, ingester.name)}")
        _judge_capture(ingester, capture, case)
    if case.account is not None:
        try:
            case.state, wrong = case.account()
            case.wrong += wrong
            case.is_accounted = True
        except Exception as error:  # noqa: BLE001 - as above
            case.wrong.append(f"account: raised {type(error).__name__}: {error}")
    if _peak() - before > MOST_GROWTH:
        case.wrong.append(f"the peak of memory rose by {(_peak() - before) >> 10} MiB")


def _judge_capture(ingester: Ingester, capture: Capture, case: Case) -> None:
    expected: dict[str, list[str]] | str | None = None
    for way in case.ways:
        try:
            outcome = read(ingester, capture, way)
        except Exception as error:  # noqa: BLE001 - whatever is raised here is a finding
            case.wrong.append(
                f"{way.name}: raised {error_lines.one_line(error, ingester.name) or type(error).__name__}"
            )
            continue
        if outcome.refused is not None and RAW_WORDS.search(outcome.refused):
            case.wrong.append(f"{way.name}: refused in raw words: {outcome.refused}")
        found = outcome.comparable()
        if expected is None:
            expected, case.state, case.is_whole = found, outcome.state, True
            case.wrong += _lost(case, outcome)
        elif found != expected:
            case.wrong.append(f"{way.name} differs from {case.ways[0].name}: {difference(expected, found, outcome)}")


def read(ingester: Ingester, capture: Capture, way: Way) -> Outcome:
    """Read a capture one way, once more where the reader asks for that; ``check`` holds of what comes."""
    with way.taken():
        try:
            try:
                return Outcome(_read(ingester, capture, way, False))
            except ReadAgain:
                return Outcome(_read(ingester, capture, way, True))
        except TracedbError as error:
            return Outcome(refused=str(error))


def _read(ingester: Ingester, capture: Capture, way: Way, is_second: bool) -> Reading:
    reading = Reading()
    with instance().cursor() as scratch:
        for rows in ingester.read(capture, scratch, Options(cores=way.cores, is_second=is_second)):
            reading.tables.setdefault(rows.table, []).extend(as_dicts(rows))
    try:
        check(reading)
    except AssertionError as error:
        raise AssertionError(f"the account or the numbers are wrong: {_short(repr(error.args))}") from error
    return reading


def _lost(case: Case, outcome: Outcome) -> Iterator[str]:
    """Tell where a capture that is complete, without a warning, has fewer rows than another reader counts."""
    if outcome.reading is None:
        return
    case.is_warned = bool(outcome.reading.faults)
    if outcome.state != "complete" or case.is_warned:
        return
    for kind, count in (case.count() or {}).items():
        rows = outcome.reading.kernels("kind")
        found = rows.count(kind) if kind in ("kernel", "memcpy", "memset") else len(outcome.reading.rows(kind, "part"))
        if found != count:
            yield f"complete, without a warning, and {found} rows of {kind} where another reader counts {count}"


def difference(expected: Any, found: Any, outcome: Outcome | None) -> str:
    """Return in short where two outcomes part."""
    if isinstance(expected, str) or isinstance(found, str):
        return f"{_kind(expected)} against {_kind(found)} ({_short(outcome.refused or '' if outcome else '')})"
    for table in sorted(expected.keys() | found.keys()):
        one, two = expected.get(table, []), found.get(table, [])
        if one != two:
            left = [row for row in one if row not in two][:1]
            right = [row for row in two if row not in one][:1]
            return f"{table}: {len(one)} and {len(two)} rows; {_short(str(left))} against {_short(str(right))}"
    return "nothing"


def _kind(outcome: Any) -> str:
    return outcome if isinstance(outcome, str) else "rows"


def _short(text: str) -> str:
    return text[:700]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
