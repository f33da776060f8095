"""Choose an answer's format and write it to its destination."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tracedb.errors import OutputFault, TracedbError, UsageError
from tracedb.output.answer import Answer
from tracedb.output.binary_files import write_parquet, write_xlsx
from tracedb.output.destination import replacing
from tracedb.output.machine_text import write_csv, write_json, write_ndjson

_ENDINGS = {
    ".txt": "table",
    ".csv": "csv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".html": "html",
    ".htm": "html",
}
_BINARY: dict[str, Callable[[Answer, Path], None]] = {"parquet": write_parquet, "xlsx": write_xlsx}
_TEXT: dict[str, Callable[[Answer, TextIO], None]] = {
    "csv": write_csv,
    "json": write_json,
    "ndjson": write_ndjson,
    "jsonl": write_ndjson,
}


def choose_format(format_name: str | None, out: Path | None) -> str:
    """Return the named format, or that of ``out``'s extension; by default a table on stdout."""
    chosen = format_name
    if chosen is None:
        chosen = "table" if out is None else _ENDINGS.get(out.suffix.lower())
        if chosen is None:
            raise UsageError(
                f"{out}: unknown extension; known are {', '.join(_ENDINGS)}, or name a format with --format"
            )
    if chosen in _BINARY and out is None:
        raise UsageError(f"{chosen} is not a text format: name a file with -o")
    if chosen == "xlsx":
        from tracedb.output import workbook

        workbook.require()
    return chosen


def write(answer: Answer, format_name: str, out: Path | None) -> int:
    """Write an answer to ``out`` or stdout; return how many columns a table had no room for.

    A file appears only when it is complete. Raises ``TracedbError`` if writing fails, ``OutputFault`` for stdout.
    The caller must check that ``out`` is not a file that the command reads (``destination.refuse_overwriting``).
    """
    if out is not None and format_name in _BINARY:
        with writing(out) as aside:
            _BINARY[format_name](answer, aside)
        return 0
    with streaming(out) as target:
        left = _write_text(answer, format_name, target)
        if format_name == "table" and out is not None:  # which, unlike one on a terminal, goes without what stderr says
            write_remarks(answer, target)
        return left


def write_remarks(answer: Answer, target: TextIO) -> None:
    """Write warnings and notes, a line each."""
    target.writelines(f"{kind}: {' '.join(text.split())}\n" for kind, text in answer.remarks)


@contextmanager
def streaming(out: Path | None) -> Iterator[TextIO]:
    """Yield the text stream of a file, which appears only when it is complete, or of stdout for None.

    Raises ``TracedbError`` if writing fails, ``OutputFault`` for stdout.
    """
    if out is not None:
        with writing(out) as aside, _opened(aside) as target:
            yield target
        return
    if sys.stdout is None:  # closed by the caller: >&-
        raise OutputFault("there is no standard output to write to; name a file with -o")
    stream = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="", write_through=False)
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFault(f"standard output cannot be written: {error.strerror or error}") from error
    finally:
        stream.detach()


def write_text(text: str, out: Path) -> None:
    """Write a text file, which appears only when it is complete. Raises ``TracedbError`` if that fails."""
    with streaming(out) as target:
        target.write(text)


def write_bytes(content: bytes, out: Path) -> None:
    """Write a binary file, which appears only when it is complete. Raises ``TracedbError`` if that fails."""
    with _told(out), replacing(out) as aside, aside.open("ab") as target:
        target.write(content)


@contextmanager
def writing(out: Path) -> Iterator[Path]:
    """Yield the path to write a file to, which appears only when it is complete (see ``destination.replacing``).

    Raises ``TracedbError`` if that fails.
    """
    with _told(out), replacing(out) as aside:
        yield aside


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TracedbError(f"{out}: cannot be written: {error.strerror or error}") from error


def _opened(path: Path) -> TextIO:
    return path.open("a", encoding="utf-8", newline="")  # append: the target of stdout must not be truncated


def _write_text(answer: Answer, format_name: str, target: TextIO) -> int:
    if format_name == "table":
        from tracedb.output.terminal import write_table

        return write_table(answer, target)
    if format_name in ("markdown", "html"):
        from tracedb.output.markdown_html import write_html, write_markdown

        (write_html if format_name == "html" else write_markdown)(answer, target)
        return 0
    _TEXT[format_name](answer, target)
    return 0
