"""Formats for people: Markdown, and a self-contained HTML page with a sortable table."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from itertools import chain, islice
from string import Template
from typing import TextIO

from tracedb.output.answer import Answer
from tracedb.output.display import MISSING, Strip, strips
from tracedb.output.shorten import visible
from tracedb.output.terminal import PAGE, ShortTexts

NAME_WIDTH = 60
_SPECIAL = re.compile(r"[<>&*_\[\]`\\~#|]")
_LIVE = re.compile(r"[$@]|www\.|://", re.IGNORECASE)
"""What GitHub makes a formula, a mention or a link of; a backslash before it does not help everywhere."""

_PAGE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }
table { border-collapse: collapse; }
th { position: sticky; top: 0; background: #eee; cursor: pointer; text-align: left; }
th, td { padding: .2em .7em; border-bottom: 1px solid #ddd; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.text { max-width: 48em; overflow: hidden; text-overflow: ellipsis; font-family: ui-monospace, monospace; }
.warning { color: #8a4b00; }
.note { color: #444; }
</style>
</head>
<body>
$body
<script>
for (const head of document.querySelectorAll("th")) head.addEventListener("click", () => {
  const at = head.cellIndex, down = head.dataset.down !== "1", body = head.closest("table").tBodies[0];
  head.dataset.down = down ? "1" : "0";
  const value = row => row.cells[at].dataset.value ?? row.cells[at].textContent;
  const order = (a, b) => a === b ? 0 : a === "" ? 1 : b === "" ? -1 :
    isFinite(a) && isFinite(b) ? a - b : a.localeCompare(b);
  [...body.rows].sort((a, b) => order(value(a), value(b)) * (down ? -1 : 1)).forEach(row => body.append(row));
});
</script>
</body>
</html>
"""
)


def write_markdown(answer: Answer, target: TextIO) -> None:
    """Write a table in GitHub's Markdown; text with Markdown syntax is put into code spans."""
    short: list[ShortTexts] = []
    for made in _pages(answer):
        if not short:
            target.write("| " + " | ".join(markdown_text(strip.header) for strip in made) + " |\n")
            target.write("|" + "|".join("---:" if strip.right else "---" for strip in made) + "|\n")
            short = [_shortened(strip) for strip in made]
            columns = [strip.cells for strip in made]
        else:
            columns = [texts.cells(strip) for strip, texts in zip(made, short, strict=True)]
        for cells in zip(*columns, strict=True):
            target.write("| " + " | ".join(markdown_text(cell) for cell in cells) + " |\n")
    for kind, text in answer.remarks:
        target.write(f"\n> {kind.capitalize()}: {prose(text)}\n")


def _pages(answer: Answer) -> Iterator[list[Strip]]:
    """Yield the columns of a page of rows at a time; units are those of the first page, which comes even if empty."""
    rows = iter(answer.rows)
    first = made = strips(answer, list(islice(rows, PAGE)))
    while True:
        yield made
        page_rows = list(islice(rows, PAGE))
        if not page_rows:
            return
        made = strips(answer, page_rows, first)


def _shortened(strip: Strip) -> ShortTexts:
    """Shorten the names of the first page of a column."""
    whole = strip.cells
    if strip.shorten is None or strip.folds:
        return ShortTexts(strip, whole, sys.maxsize)
    strip.cells = strip.shorten(whole, NAME_WIDTH)
    return ShortTexts(strip, whole, NAME_WIDTH)


def prose(text: str) -> str:
    """Return text on one line with Markdown syntax escaped."""
    return " ".join(
        markdown_text(word) if _LIVE.search(word) else _SPECIAL.sub(r"\\\g<0>", word) for word in text.split()
    )


def markdown_text(text: str) -> str:
    """Return text for Markdown; text with Markdown syntax becomes a code span."""
    if not (_SPECIAL.search(text) or _LIVE.search(text)):
        return text
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def write_html(answer: Answer, target: TextIO) -> None:
    """Write one self-contained page; names are complete, and a click on a header sorts."""
    title = answer.report or "answer"
    before, after = page(title, f"<h1>{html.escape(title)}</h1>\n\0").split("\0")
    target.write(before)
    for number, line in enumerate(_lines(answer)):
        target.write(f"\n{line}" if number else line)
    target.write(after)


def page(title: str, body: str) -> str:
    """Return a self-contained page with this body, whose tables are sorted by a click on a header."""
    return _PAGE.substitute(title=html.escape(title), body=body)


def section(answer: Answer) -> str:
    """Return the HTML of an answer: where it comes from, warnings and notes, its table."""
    return "\n".join(_lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    pages = _pages(answer)
    made = next(pages)
    said = [
        f"database {answer.database}" if answer.database else "",
        f"views {answer.version}" if answer.version else "",
    ]
    said += [f"{key}: {value}" for key, value in (answer.filters or {}).items() if value not in (None, [], {})]
    remarks = [f'<p class="{kind}">{kind.capitalize()}: {html.escape(text)}</p>' for kind, text in answer.remarks]
    header = "".join(f"<th>{html.escape(strip.header)}</th>" for strip in made)
    about = html.escape(" · ".join(part for part in said if part))
    yield from (f"<p>{about}</p>", *remarks, "<table>", f"<thead><tr>{header}</tr></thead>", "<tbody>")
    for strips_of_page in chain([made], pages):
        for cells in zip(*(strip.cells for strip in strips_of_page), strict=True):
            yield "<tr>" + "".join(map(_cell, strips_of_page, cells)) + "</tr>"
    yield from ("</tbody>", "</table>")


def _cell(strip: Strip, cell: str) -> str:
    text = html.escape(visible(cell))
    if strip.right:
        bare = "" if cell == MISSING else html.escape(cell.replace(",", "").lstrip("<>"))
        return f'<td class="number" data-value="{bare}">{text}</td>'
    return f'<td class="text" title="{text}">{text}</td>'
