"""A table for eyes on a terminal, fitted to its width."""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracedb.output.answer import Answer
from tracedb.output.shape import Strip, strips

DEFAULT_WIDTH = 100
_HARD_FLOOR = 6


def write_table(answer: Answer, target: TextIO) -> int:
    """Write the table; return how many columns did not fit."""
    rows = list(answer.rows)
    is_terminal = target.isatty()
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if is_terminal else _width_without_terminal()
    made = strips(answer, rows)
    kept, gap = fit(made, width)
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
        if strip.shorten and any(cell_len(cell) > wide for cell in strip.cells):
            strip.cells = strip.shorten(strip.cells, wide)
    return True


def _natural(strip: Strip) -> int:
    return max([_longest_word(strip), *(cell_len(cell) for cell in strip.cells)])


def _longest_word(strip: Strip) -> int:
    return max((cell_len(word) for word in strip.header.split()), default=1)


def _render(kept: list[Strip], gap: int, colour: bool) -> str:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0), collapse_padding=False)
    widths = []
    for strip in kept:
        wide = _natural(strip)
        widths.append(wide)
        header = Text("\n".join(textwrap.wrap(strip.header, wide, break_long_words=False)))
        justify = "right" if strip.right else "left"
        table.add_column(header, justify=justify, width=wide, no_wrap=True, vertical="bottom")  # type: ignore[arg-type]
    for cells in zip(*(strip.cells for strip in kept), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    console = Console(
        width=sum(widths) + gap * len(widths) + 2,
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(table)
    return "".join(line.rstrip() + "\n" for line in captured.get().splitlines()) if not colour else captured.get()
