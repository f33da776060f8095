"""A table fitted to the width of the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import TextIO

from rich.cells import cell_len

from tracedb.output.answer import Answer
from tracedb.output.display import Strip, strips
from tracedb.output.shorten import shorten, visible

DEFAULT_WIDTH = 100
_HARD_FLOOR = 6
LONGEST_NAME = 80
"""Characters of a kernel's name in a table of every column."""
PAGE = 1000
"""Rows formatted and written at once."""


def write_table(answer: Answer, target: TextIO) -> int:
    """Write the table; return how many columns did not fit.

    Rows are written a page at a time. The first page determines columns, widths and units; wider text on later pages
    exceeds its column.
    """
    rows = iter(answer.rows)
    first = list(islice(rows, PAGE))
    is_terminal = target.isatty()
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if is_terminal else _width_without_terminal()
    made = strips(answer, first)
    whole = {id(strip): strip.cells for strip in made}
    kept, gap = (_without_long_names(made), 2) if answer.is_wide else fit(made, width)
    given = [whole[id(strip)] for strip in kept]
    layout = _layout(kept, gap, width)
    target.write(_head(layout, is_terminal and not os.environ.get("NO_COLOR")) + _body(kept, layout))
    if len(first) == PAGE:
        places = [at for at, strip in enumerate(made) if any(strip is other for other in kept)]
        widths = [_longest(strip) for strip in kept] if answer.is_wide else layout.widths
        short = [ShortTexts(*each) for each in zip(kept, given, widths, strict=True)]
        first, whole, given = [], {}, []  # texts of kilobytes each
        for strip in made:
            strip.cells = []
        while page := list(islice(rows, PAGE)):
            target.flush()
            following = strips(answer, page, made)
            following = [following[at] for at in places]
            for strip, shortened in zip(following, short, strict=True):
                strip.cells = shortened.cells(strip)
            target.write(_body(following, layout))
    return len(made) - len(kept)


def _longest(strip: Strip) -> int:
    return LONGEST_NAME if strip.shorten is shorten else sys.maxsize


def _without_long_names(made: list[Strip]) -> list[Strip]:
    """Shorten names that would push all other columns of a table of every column out of sight."""
    for strip in made:
        if strip.shorten is not None and any(_width(cell) > _longest(strip) for cell in strip.cells):
            strip.cells = strip.shorten(strip.cells, LONGEST_NAME)
    return made


class ShortTexts:
    """Shortens the texts of a column page by page; equal texts are always shortened alike.

    Only digests of the texts are kept: there may be tens of thousands of kernel names, of kilobytes each.
    """

    def __init__(self, strip: Strip, whole: Sequence[str], width: int) -> None:
        """``strip`` has the shortened texts of the first page, ``whole`` the texts they were made of."""
        self._width = width
        self._is_cut = list(whole) != strip.cells
        self._told = dict(zip(map(_digest, whole), strip.cells, strict=True))
        self._taken = set(self._told.values())

    def cells(self, strip: Strip) -> list[str]:
        """Return the shortened texts of a later page; different texts stay different."""
        digests = {text: _digest(text) for text in dict.fromkeys(strip.cells)}
        new = [text for text, digest in digests.items() if digest not in self._told]
        if strip.shorten is None or not (self._is_cut or any(_width(text) > self._width for text in new)):
            return strip.cells
        for text, cut in zip(new, strip.shorten(new, self._width), strict=True):
            found = self._told[digests[text]] = self._free(cut)
            self._taken.add(found)
        return [self._told.get(digests[text], text) for text in strip.cells]

    def _free(self, cut: str) -> str:
        number, found = 2, cut
        while found in self._taken:
            mark = f"#{number}"
            found, number = cut[: max(self._width - len(mark), 0)] + mark, number + 1
        return found


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _width_without_terminal() -> int:
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdigit() and int(said) > 0 else DEFAULT_WIDTH


def fit(made: list[Strip], width: int) -> tuple[list[Strip], int]:
    """Return the columns that fit, shortened as far as they allow, and the gap between them."""
    kept = list(made)
    while True:
        for gap in (2, 1):
            if _cut(kept, width - gap * (len(kept) - 1)):
                return kept, gap
        droppable = [strip for strip in kept if strip.drop]
        if not droppable:
            break
        kept.remove(max(reversed(droppable), key=lambda strip: strip.drop))
    for strip in kept:
        strip.floor = strip.floor if strip.folds else min(strip.floor, _HARD_FLOOR)
    while len(kept) > 1 and not _cut(kept, width - len(kept) + 1):
        going = [strip for strip in kept[1:] if not strip.stays]
        kept.remove(going[-1] if going else kept[-1])
    return kept, 1


def _cut(kept: list[Strip], room: int) -> bool:
    """Shorten the texts of the widest columns until all fit into ``room``; return whether that succeeded."""
    widths = [_natural(strip) for strip in kept]
    floors = [
        min(wide, max(strip.floor, _longest_word(strip))) if strip.shorten else wide
        for strip, wide in zip(kept, widths, strict=True)
    ]
    if sum(widths) > room and sum(floors) > room:
        return False
    while sum(widths) > room:
        over = [at for at, wide in enumerate(widths) if wide > floors[at]]
        widest = max(over, key=lambda at: (widths[at], at))
        widths[widest] -= 1
    for strip, wide in zip(kept, widths, strict=True):
        if strip.shorten and any(_width(cell) > wide for cell in strip.cells):
            strip.cells = strip.shorten(strip.cells, wide)
    return True


def _natural(strip: Strip) -> int:
    widest = strip.natural() if strip.natural is not None else max(map(_width, strip.cells), default=0)
    return max(_longest_word(strip), widest)


def _longest_word(strip: Strip) -> int:
    return max((_width(word) for word in strip.header.split()), default=1)


def _width(text: str) -> int:
    """Return the display width of a text."""
    return len(text) if text.isascii() else cell_len(text)


@dataclass(frozen=True)
class _Layout:
    """Widths of the columns, the lines of their headers, and the gap between columns."""

    widths: list[int]
    headers: list[list[str]]
    gap: int


def _layout(kept: Sequence[Strip], gap: int, room: int) -> _Layout:
    widths, headers = [], []
    for strip in kept:
        texts = max((_width(line) for cell in strip.cells for line in _lines(strip, cell)), default=0)
        widths.append(max(_longest_word(strip), texts))
    room -= sum(widths) + gap * (len(kept) - 1)
    for at, strip in enumerate(kept):
        more = _width(strip.header) - widths[at]
        if strip.stays_on_line and 0 < more <= room:
            widths[at] += more
            room -= more
    for strip, wide in zip(kept, widths, strict=True):
        headers.append(_padded(textwrap.wrap(strip.header, wide, break_long_words=False) or [""], wide, strip.right))
    return _Layout(widths, headers, gap)


def _head(layout: _Layout, colour: bool) -> str:
    between = " " * layout.gap
    most = max(map(len, layout.headers), default=0)
    standing = [[" " * _width(lines[0])] * (most - len(lines)) + lines for lines in layout.headers]  # on the rule
    top = [between.join(words).rstrip() for words in zip(*standing, strict=True)]
    rule = "─" * (sum(_width(lines[-1]) for lines in layout.headers) + layout.gap * (len(layout.headers) - 1))
    return "".join(f"{line}\n" for line in [*(f"\x1b[1m{line}\x1b[0m" if colour else line for line in top), rule])


def _body(kept: Sequence[Strip], layout: _Layout) -> str:
    """Return the lines of rows; each is a single join, since there may be tens of thousands."""
    between = " " * layout.gap
    if any(strip.folds for strip in kept):
        kept = _unfolded(kept)
    columns = [
        _padded([visible(cell) for cell in strip.cells], wide, strip.right)
        for strip, wide in zip(kept, layout.widths, strict=True)
    ]
    return "".join(between.join(cells).rstrip() + "\n" for cells in zip(*columns, strict=True))


def _lines(strip: Strip, cell: str) -> list[str]:
    """Return the lines of a cell."""
    return [visible(line) for line in (cell.split("\n") if strip.folds else [cell])]


def _unfolded(kept: Sequence[Strip]) -> list[Strip]:
    """Return columns with one cell per line: rows with wrapped text take several lines."""
    cells: list[list[str]] = [[] for _ in kept]
    for row in zip(*(strip.cells for strip in kept), strict=True):
        lines = [_lines(strip, cell) for strip, cell in zip(kept, row, strict=True)]
        height = max(map(len, lines))
        for column, texts in zip(cells, lines, strict=True):
            column += texts + [""] * (height - len(texts))
    return [replace(strip, cells=texts) for strip, texts in zip(kept, cells, strict=True)]


def _padded(texts: list[str], wide: int, right: bool) -> list[str]:
    gaps = [" " * (wide - _width(text)) for text in texts]
    return [space + text if right else text + space for text, space in zip(texts, gaps, strict=True)]
