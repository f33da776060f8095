"""Style of pictures: colours for the colour-blind, fonts, axes for times and sizes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import ceil, floor, log10
from typing import Any

from tracedb.output.display import time_unit
from tracedb.output.shorten import visible

INK = "#222222"
FAINT = "#6b6b6b"
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, RED, PINK, GREY = "#E69F00", "#D55E00", "#CC79A7", "#BBBBBB"

SERIES = [BLUE, ORANGE, GREEN, PINK, SKY, RED, "#332288", "#999933", "#44AA99", "#882255", "#661100", "#777777"]
"""Okabe and Ito's colours, then some of Paul Tol's muted ones."""

CLASSES = {
    "matmul": BLUE,
    "attention": SKY,
    "collective": RED,
    "copy": ORANGE,
    "elementwise": GREEN,
    "normalization": "#44AA99",
    "softmax": PINK,
    "optimizer": "#332288",
    "reduction": "#882255",
    "embedding_index": "#999933",
    "convolution": "#117733",
    "random": "#AA4499",
    "graph": "#661100",
    "other": "#999999",
}

PARTS = {
    "computation": BLUE,
    "exposed collective": RED,
    "exposed copy": ORANGE,
    "idle": "#DDDDDD",
}

_WIDE = 30
_FEW = 6
_STEPS = ((5, (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)), (300, (1.0, 2.0, 3.0, 5.0)), (1e4, (1.0, 2.0, 5.0)))
"""Largest ratio of the ends of a logarithmic axis → its ticks in a decade."""

CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "Liberation Sans, Helvetica, Arial, sans-serif",
    "padding": 14,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#E6E6E6",
        "domainColor": "#999999",
        "tickColor": "#999999",
        "labelLimit": 420,
        "titlePadding": 8,
    },
    "axisX": {"labelFlush": False},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "labelLimit": 320,
        "symbolStrokeWidth": 2,
        "columnPadding": 20,
    },
    "header": {"labelFontSize": 12, "titleFontSize": 12, "labelColor": INK, "labelLimit": 420},
    "title": {
        "anchor": "start",
        "fontSize": 16,
        "subtitleFontSize": 12,
        "color": INK,
        "subtitleColor": FAINT,
        "offset": 14,
        "subtitlePadding": 6,
        "subtitleLineHeight": 16,
        "frame": "group",
    },
}


def class_scale(classes: Set[str]) -> dict[str, Any]:
    """Return the colours of kernel classes; grey for classes from rules that the user added."""
    known = [name for name in CLASSES if name in classes]
    others = sorted(classes - set(known))
    colours = [CLASSES[name] for name in known] + ["#777777"] * len(others)
    return {"domain": [*known, *map(visible, others)], "range": colours}


def time_axis(values: Sequence[object]) -> tuple[str, str]:
    """Return the unit for times in ns, chosen as in tables, and the expression that formats a tick in it."""
    divisor, unit = time_unit(values)
    return unit, f"format(datum.value / {divisor:.0f}, ',~f')"


def count_axis(counts: Sequence[Any]) -> dict[str, Any]:
    """Return the axis of counts from 0: every tick is a whole number, which small counts need to be told."""
    most = max(counts, default=0)
    return {"format": ",d", "values": list(range(most + 1))} if most <= _FEW else {"format": ",d", "tickMinStep": 1}


def log_ticks(low: float, high: float) -> list[float]:
    """Return round values for a logarithmic axis: the fewer decades there are, the more in each."""
    first, last = floor(log10(low)), ceil(log10(high))
    steps = next((steps for most, steps in _STEPS if high <= most * low), (1.0,))
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low <= tick <= high] or [low, high]


def size_values(most: float) -> list[float]:
    """Return up to four round values above 0 for the legend of a size, whose scale begins at 0."""
    if most <= 0:
        return []
    least = most / 4
    power = 10.0 ** floor(log10(least))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= least)
    return [step * number for number in range(1, 5) if step * number <= most]


def time_channel(values: Sequence[Any], title: str, kind: str = "linear") -> dict[str, Any]:
    """Return scale and axis for times in ns: ``linear``, ``zero`` (linear from 0), ``log``, or ``wide``.

    ``wide`` is logarithmic if the largest is 30 times the smallest or more, else linear.
    """
    known = [value for value in values if value is not None] or [1]
    unit, expression = time_axis(known)
    axis: dict[str, Any] = {"labelExpr": expression, "title": f"{title}, {unit}", "labelOverlap": True}
    is_log = min(known) > 0 and (kind == "log" or (kind == "wide" and max(known) >= _WIDE * min(known)))
    if not is_log:
        return {"scale": {"zero": kind == "zero", "nice": True}, "axis": axis}
    ends = [min(known) / 1.15, max(known) * 1.15]
    return {"scale": {"type": "log", "domain": ends, "nice": False}, "axis": {**axis, "values": log_ticks(*ends)}}


def size_expression() -> str:
    """Return the expression that formats a tick of bytes in KiB, MiB or GiB."""
    return (
        "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',.4~r') + ' GiB' : "
        "datum.value >= 1048576 ? format(datum.value / 1048576, ',.4~r') + ' MiB' : "
        "datum.value >= 1024 ? format(datum.value / 1024, ',.4~r') + ' KiB' : format(datum.value, ',~r') + ' B'"
    )
