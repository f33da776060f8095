"""Answers as tables of a page: the display columns, each with its meaning."""

from __future__ import annotations

from tracedb.output import Answer, Show
from tracedb.output.display import strips
from tracedb.output.shorten import visible
from tracedb.page.contents import Heading, Table

LONGEST = 2_000
"""Characters of a text shown in a cell; the number of omitted ones follows."""


def table(answer: Answer, caption: str, said: str = "") -> Table:
    """Read the rows of an answer and return them as the display columns of a table."""
    rows = list(answer.rows)
    made = strips(answer, rows)
    names = {column.name for column in answer.columns}
    shows = answer.shows or [Show((column.name,)) for column in answer.columns]
    shows = [show for show in shows if names.issuperset(show.columns)]
    headings = [
        Heading(visible(strip.header), _meaning(answer, show), strip.right)
        for show, strip in zip(shows, made, strict=True)
    ]
    cells = [strip.cells if strip.right else [_cut(visible(cell)) for cell in strip.cells] for strip in made]
    return Table(caption, headings, list(zip(*cells, strict=True)), said)


def _meaning(answer: Answer, show: Show) -> str:
    """Return the meaning of the answer's columns behind a display column."""
    columns = {column.name: column for column in answer.columns}
    meanings = [columns[name].description or "" for name in show.columns]
    named = zip(show.columns, meanings, strict=True)
    texts = [f"{name}: {text}" for name, text in named if text] if len(meanings) > 1 else meanings
    return visible(" ".join(texts))


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… (and {len(text) - LONGEST:,} more characters)"
