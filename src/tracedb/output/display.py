"""The display columns of a table: their units, short headers, and text that may be shortened."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracedb.output.answer import Answer, Column, plain
from tracedb.output.display_column import Show
from tracedb.output.shorten import TIMES, brief, dims, middle, shorten, tell_apart, visible

MISSING = "\N{EN DASH}"
BELOW = "<"
"""Before a number that is smaller than its decimals can show."""
DIGITS = 8
"""Significant digits of a number in the table of a query; other formats have all."""
MAKER = re.compile(r"^(NVIDIA|AMD|Intel)(\(R\))?[ -]*(?=.)")
_UNITS = ((1e10, 1e9, "s"), (1e7, 1e6, "ms"), (0.0, 1e3, "µs"))  # least maximum, divisor, name
_FLOP_UNITS = ((1e13, 1e12, "TFLOP"), (1e10, 1e9, "GFLOP"), (0.0, 1e6, "MFLOP"))
Values = Sequence[object]
Shorten = Callable[[Sequence[str], int], list[str]]


@dataclass
class Strip:
    """A column ready to be printed: its header and one text per row."""

    header: str
    cells: list[str]
    right: bool
    drop: int = 0
    floor: int = 0
    shorten: Shorten | None = None
    folds: bool = False
    """Whether long text is wrapped over several lines; ``shorten`` then inserts the breaks."""
    stays: bool = False
    """Whether it is among the last columns dropped from a table that is too wide."""
    natural: Callable[[], int] | None = None
    """Returns its width where there is room, if that is not the width of its texts; ``shorten`` makes them fit."""
    largest: float = 0
    """The value that determines the unit of times, see ``_scale``."""
    stays_on_line: bool = False
    """Whether the header is wrapped only where there is no room for it: the expression of a query."""


def strips(answer: Answer, rows: Sequence[Sequence[object]], before: Sequence[Strip] | None = None) -> list[Strip]:
    """Return the display columns for some rows of an answer.

    ``before``: the columns of the first rows, whose units are used again.
    """
    places = {column.name: at for at, column in enumerate(answer.columns)}
    shows = answer.shows
    if shows is None:
        shows = [Show((column.name,), column.name, _plain_kind(column)) for column in answer.columns]
    made: list[Strip] = []
    scales: dict[str, float] = {}
    shows = [show for show in shows if all(name in places for name in show.columns)]
    for show in shows if before is None else ():
        if show.scale:
            largest = _scale([row[places[name]] for row in rows for name in show.columns])
            scales[show.scale] = max(scales.get(show.scale, 0), largest)
    for show in shows:
        parts = [[row[places[name]] for row in rows] for name in show.columns]
        largest = before[len(made)].largest if before else _scale([value for values in parts for value in values])
        largest = scales.get(show.scale, largest)
        made.append(_strip(show, answer.columns[places[show.columns[0]]], parts, largest))
        made[-1].header = visible(made[-1].header)  # may be written by the user, or a label's key
        made[-1].largest = largest
        made[-1].stays_on_line = answer.shows is None
        if show.short is not None:
            _with_short_forms(made[-1], show.short)
    return made


def _with_short_forms(strip: Strip, short: Callable[[Sequence[str]], Mapping[str, str]]) -> None:
    """Let a column of names show their short forms where they are long."""
    known: dict[str, str] = {}

    def briefly(texts: Sequence[str]) -> list[str]:
        wanted = dict.fromkeys(texts)
        new = [text for text in wanted if text not in known]
        for gone in [text for text in known if text not in wanted]:  # of earlier pages: long texts, of any number
            del known[gone]
        known.update({**dict(zip(new, new, strict=True)), **short(new)} if new else {})
        return brief(texts, known)

    def fitted(texts: Sequence[str], width: int) -> list[str]:
        made = briefly(texts)
        return made if max(map(len, made), default=0) <= width else shorten(made, width)

    strip.shorten = fitted
    strip.natural = lambda: max(map(len, briefly(strip.cells)), default=0)


def _plain_kind(column: Column) -> str:
    if column.type.startswith("MAP"):
        return "labels"
    if column.type in ("DOUBLE", "FLOAT"):
        return "float"
    return "raw" if column.is_number else "text"


def _strip(show: Show, column: Column, parts: Sequence[Values], largest: float) -> Strip:
    kind = show.kind or _kind(column)
    header = show.header if show.header is not None else _header(column.name)
    values = parts[0]
    if kind == "ns":
        cells, unit = _times(values, largest)
        return Strip(f"{header} {unit}".strip(), cells, True, show.drop)
    if kind == "FLOP":
        divisor, unit = next((divisor, unit) for least, divisor, unit in _FLOP_UNITS if largest >= least)
        cells = [_cell(value, lambda item: _fixed(item / divisor, 3)) for value in values]
        return Strip(unit if header == "flops" else f"{header} {unit}", cells, True, show.drop)
    if kind in _NUMBERS:
        suffix = " %" if kind == "percent" else ""
        return Strip(header + suffix, [_cell(value, _NUMBERS[kind]) for value in values], True, show.drop)
    if kind in _JOINED:
        cells = [
            _JOINED[kind].join(_cell(value, _NUMBERS["count"]) for value in row) for row in zip(*parts, strict=True)
        ]
        return Strip(header, cells, True, show.drop)
    if kind == "span":
        return _span(header, parts, show, largest)
    if kind == "place":
        return _place(show, parts)
    if kind == "verdict":
        return Strip(header, [_text(value, "text", show) for value in values], False, show.drop, stays=True)
    if kind in ("fold", "word"):
        texts = [_text(value, "text", show) for value in values]
        is_whole = kind != "fold"
        floor = max((len(word) for text in set(texts) for word in text.split()), default=1) if is_whole else show.floor
        return Strip(header, texts, False, show.drop, floor, _folded, folds=True)
    cuts: dict[str, Shorten] = {"name": shorten, "kernel": shorten, "gpu": _cut_gpu}
    cut = cuts.get(kind, _cut_end)
    texts = [_text(value, kind, show) for value in values]
    return Strip(header, texts, False, show.drop, show.floor, cut)


def _kind(column: Column) -> str:
    if column.unit in ("ns", "percent", "ratio", "count", "FLOP"):
        return column.unit
    if column.is_number:
        return "number"
    if column.type.startswith("MAP"):
        return "labels"
    return "text"


def _header(name: str) -> str:
    return re.sub(r"_(ns|percent)$", "", name).replace("_", " ")


def _times(values: Values, largest: float) -> tuple[list[str], str]:
    """Return nanoseconds as text in the unit that suits the largest value, and the unit; only zero is shown as zero."""
    divisor, unit = time_unit([largest])
    digits = 1 if unit == "µs" and largest >= 1e5 else 3
    return [_cell(value, lambda item: _fixed(item / divisor, digits)) for value in values], unit


def _fixed(value: float, digits: int) -> str:
    """Return a number with these decimals; one that they would show as zero, as less than the last of them."""
    text = f"{value:,.{digits}f}"
    if value and not text.strip("-0."):
        return f"{BELOW}{10**-digits:.{digits}f}" if value > 0 else f">-{10**-digits:.{digits}f}"
    return text


def _largest(values: Iterable[object]) -> float:
    return max((abs(value) for value in values if isinstance(value, int | float)), default=0)


def _scale(values: Values) -> float:
    """Return the largest value, lowered until its unit shows the smallest one as more than zero.

    It is not lowered so far that the largest one would have more than ten digits.
    """
    largest = _largest(values)
    smallest = min((abs(value) for value in values if isinstance(value, int | float) and value), default=0.0)
    for least, divisor, _ in _UNITS[:-1]:
        if largest >= least and smallest < divisor / 2000 and largest < 1e10 * divisor / 1000:
            largest = least * 0.999
    return largest


def time_unit(values: Values) -> tuple[float, str]:
    """Return the divisor for times in ns, and the resulting unit, which suits the largest value."""
    largest = _largest(values)
    return next((divisor, unit) for least, divisor, unit in _UNITS if largest >= least)


def _span(header: str, parts: Sequence[Values], show: Show, largest: float) -> Strip:
    """Return two times as one text, in one unit.

    They have three decimals where fewer would show one of them as zero, and those of a row more where the row's two
    would otherwise look equal.
    """
    divisor, unit = time_unit([largest])
    digits = 0 if unit == "µs" else 1
    known = [abs(value) for values in parts for value in values if isinstance(value, int | float) and value]
    if known and round(min(known) / divisor, digits) == 0:
        digits = 3

    def text(pair: Sequence[object]) -> str:
        for places in (digits, 3):
            ends = [_cell(value, lambda item, places=places: _fixed(item / divisor, places)) for value in pair]  # type: ignore[misc]
            if len(set(ends)) == len(set(pair)):
                break
        return MISSING if set(ends) == {MISSING} else "\N{EN DASH}".join(ends)

    return Strip(f"{header} {unit}", [text(pair) for pair in zip(*parts, strict=True)], True, show.drop)


def _compact(value: float) -> str:
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3f}" if abs(value) >= 0.01 else f"{value:.3g}"


def _float(value: float) -> str:
    """Return a number with a few significant digits, never fewer than its whole part has."""
    if value == int(value):
        return str(value)
    return f"{value:.{DIGITS}g}" if abs(value) < 10 ** (DIGITS - 1) else f"{value:.1f}"


_JOINED = {"pair": "/", "size": TIMES}
_NUMBERS: dict[str, Callable[[float], str]] = {
    "count": _compact,
    "number": _compact,
    "percent": lambda value: f"{value:.1f}",
    "ratio": lambda value: f"{value:.2f}",
    "raw": str,
    "float": _float,
}


def _cell(value: object, form: Callable[[float], str]) -> str:
    known = plain(value)
    return MISSING if known is None else form(known)


def _text(value: object, kind: str, show: Show) -> str:
    value = plain(value)
    if value is None:
        return MISSING
    if isinstance(value, dict):
        wanted = show.keys or tuple(sorted(value))
        return visible(" ".join(f"{key}={value[key]}" for key in wanted if key in value)) or MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return visible(", ".join(map(str, value))) or MISSING
    text = value if isinstance(value, str) else str(value)
    if kind == "dims":
        return dims(text) or MISSING
    return show.words.get(text, text) if kind in ("name", "kernel") else visible(show.words.get(text, text))


def _place(show: Show, parts: Sequence[Values]) -> Strip:
    """Return the origin of a row in one narrow column: the values of the varying labels, then the rank."""
    labels = [item if isinstance(item, dict) else {} for item in parts[0]]
    columns = [_label_cells([str(said.get(key, MISSING)) for said in labels], key, show) for key in show.keys]
    if len(parts) > 1:
        columns.append([MISSING if rank is None else f"r{rank}" for rank in parts[1]])
    return Strip(
        "/ ".join((*show.keys, *show.columns[1:])), ["/".join(cells) for cells in zip(*columns, strict=True)], False
    )


def _label_cells(values: Sequence[str], key: str, show: Show) -> list[str]:
    if not show.words:
        return tell_apart([visible(value) for value in values])
    return [show.words.get(f"{key}={value}", visible(value)) for value in values]


def _folded(texts: Sequence[str], width: int) -> list[str]:
    return ["\n".join(textwrap.wrap(text, width, break_on_hyphens=False)) or text for text in texts]


def _cut_gpu(texts: Sequence[str], width: int) -> list[str]:
    """Return names of GPUs without their maker, by which no two of them differ."""
    return _cut_end([MAKER.sub("", text) for text in texts], width)


def _cut_end(texts: Sequence[str], width: int) -> list[str]:
    return [middle(text, width, 0.0) for text in texts]
