"""A table for eyes on a terminal, fitted to its width."""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import TextIO

from rich.cells import cell_len

from tracedb.output.answer import Answer
from tracedb.output.display import Strip, strips
from tracedb.output.shorten import visible

DEFAULT_WIDTH = 100
_HARD_FLOOR = 6


def write_table(answer: Answer, target: TextIO) -> int:
    """Write the table; return how many columns did not fit."""
    rows = list(answer.rows)
    is_terminal = target.isatty()
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if is_terminal else _width_without_terminal()
    made = strips(answer, rows)
    kept, gap = (made, 2) if answer.is_wide else fit(made, width)
    lines = _render(kept, gap, is_terminal and not os.environ.get("NO_COLOR"))
    target.write(lines)
    return len(made) - len(kept)


def _width_without_terminal() -> int:
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdigit() and int(said) > 0 else DEFAULT_WIDTH


def fit(made: list[Strip], width: int) -> tuple[list[Strip], int]:
    """Return the columns that fit, cut as far as they allow, and the gap between them."""
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
        strip.floor = min(strip.floor, _HARD_FLOOR)
    while len(kept) > 1 and not _cut(kept, width - len(kept) + 1):
        kept.pop()
    return kept, 1


def _cut(kept: list[Strip], room: int) -> bool:
    """Shorten the texts of the widest columns until all fit into ``room``; say whether that was possible."""
    widths = [_natural(strip) for strip in kept]
    if sum(widths) <= room:
        return True
    floors = [
        min(wide, max(strip.floor, _longest_word(strip))) if strip.shorten else wide
        for strip, wide in zip(kept, widths, strict=True)
    ]
    if sum(floors) > room:
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
    return max(_longest_word(strip), max(map(_width, strip.cells), default=0))


def _longest_word(strip: Strip) -> int:
    return max((_width(word) for word in strip.header.split()), default=1)


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else cell_len(text)


def _render(kept: list[Strip], gap: int, colour: bool) -> str:
    """Return header, rule and rows; a long answer has tens of thousands of these, so each is one join."""
    between = " " * gap
    columns, headers = [], []
    for strip in kept:
        cells = [visible(cell) for cell in strip.cells]
        wide = max(_longest_word(strip), max(map(_width, cells), default=0))
        headers.append(_padded(textwrap.wrap(strip.header, wide, break_long_words=False) or [""], wide, strip.right))
        columns.append(_padded(cells, wide, strip.right))
    most = max(map(len, headers), default=0)
    for header in headers:  # they stand on the rule
        header[:0] = [" " * _width(header[0])] * (most - len(header))
    top = [between.join(words).rstrip() for words in zip(*headers, strict=True)]
    rule = "─" * (sum(_width(header[-1]) for header in headers) + gap * (len(headers) - 1))
    lines = [f"\x1b[1m{line}\x1b[0m" if colour else line for line in top]
    lines.append(rule)
    lines += [between.join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "".join(line + "\n" for line in lines)


def _padded(texts: list[str], wide: int, right: bool) -> list[str]:
    gaps = [" " * (wide - _width(text)) for text in texts]
    return [space + text if right else text + space for text, space in zip(texts, gaps, strict=True)]
