"""Several answers in one file: a page, a document, a workbook, tables one below the other, a JSON object."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tracedb.errors import UsageError
from tracedb.output.answer import Answer
from tracedb.output.machine_text import write_json, write_object
from tracedb.output.markdown_html import markdown_text, page, prose, section, write_markdown
from tracedb.output.write import streaming, write_remarks, writing

FORMS = ("table", "json", "markdown", "xlsx", "html")
"""Formats of which one file holds several answers."""


@dataclass(frozen=True)
class Part:
    """One of several reports: its answer, or the reason why it has none."""

    name: str
    title: str
    answer: Answer | None
    reason: str = ""


def check_form(form: str) -> None:
    """Raise ``UsageError`` for a format of which a file holds one answer."""
    if form not in FORMS:
        raise UsageError(
            f"a {form} file holds one report; name a file of another format ({', '.join(FORMS)}), or a folder with -o"
        )


def write_several(parts: Iterable[Part], form: str, out: Path | None, title: str) -> None:
    """Write the parts to ``out``, or stdout for None; the rows of one are read before the next one is asked for.

    Raises ``TracedbError`` if writing fails, ``OutputFault`` for stdout.
    """
    if form == "xlsx":
        assert out is not None
        with writing(out) as aside:
            _workbook(parts, aside)
        return
    with streaming(out) as target:
        if form == "html":
            _page(parts, target, title)
        else:
            {"table": _tables, "json": _objects, "markdown": _chapters}[form](parts, target)


def _workbook(parts: Iterable[Part], path: Path) -> None:
    from tracedb.output.workbook import Sheet, write_workbook

    without: list[tuple[str, str]] = []

    def sheets() -> Iterator[Sheet]:
        for part in parts:
            if part.answer is None:
                without.append((part.name, part.reason))
            else:
                yield Sheet(part.name, part.answer)

    write_workbook(sheets(), path, without)


def _tables(parts: Iterable[Part], target: TextIO) -> None:
    from tracedb.output.terminal import write_table

    for place, part in enumerate(parts):
        target.write("\n" * (place > 0) + f"{part.name}: {part.title}\n\n")
        if part.answer is None:
            target.write(f"no answer: {' '.join(part.reason.split())}\n")
        else:
            write_table(part.answer, target)
            write_remarks(part.answer, target)


def _objects(parts: Iterable[Part], target: TextIO) -> None:
    target.write('{"reports": [')
    for place, part in enumerate(parts):
        target.write(",\n" if place else "\n")
        if part.answer is None:
            write_object({"report": part.name, "no_answer": part.reason}, target)
        else:
            write_json(part.answer, target)
    target.write("]}\n")


def _chapters(parts: Iterable[Part], target: TextIO) -> None:
    for place, part in enumerate(parts):
        target.write("\n" * (place > 0) + f"## {part.name}\n\n{prose(part.title)}\n\n")
        if part.answer is None:
            target.write(f"No answer: {markdown_text(' '.join(part.reason.split()))}\n")
        else:
            write_markdown(part.answer, target)


def _page(parts: Iterable[Part], target: TextIO, title: str) -> None:
    links, bodies = [], []
    for part in parts:
        name = html.escape(part.name)
        links.append(f'<a href="#{name}">{name}</a>')
        missing = f'<p class="warning">No answer: {html.escape(part.reason)}</p>'
        body = missing if part.answer is None else section(part.answer)
        bodies.append(f'<h2 id="{name}">{name}</h2>\n<p>{html.escape(part.title)}</p>\n{body}')
    head = f"<h1>{html.escape(title)}</h1>\n<nav>{' · '.join(links)}</nav>"
    target.write(page(title, "\n".join([head, *bodies])))
