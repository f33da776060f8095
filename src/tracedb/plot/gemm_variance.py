"""Spread of GEMM times by setting of the runs: box plots, violins, and two settings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tracedb.output.shorten import tell_apart, visible
from tracedb.plot import datasets
from tracedb.plot.captions import in_order, left_out, many, p_value_text
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import BLUE, FAINT, INK, ORANGE, SERIES, SKY, time_axis, time_channel

_HEIGHT = 320
_ABOVE = -14
"""Pixels from the top of a panel to the middle of the n=… text, which clears dots on the edge."""
_LINEAR_NS = 1_000
"""Spreads below this are drawn on a linear scale, larger ones on a logarithmic one, since spreads may be 0."""
_SPREAD = "spread: longest less shortest call of a GEMM"
_PANELS = 4
_NUMBERS = ("gemms", "runs", "low_ns", "p25_ns", "median_ns", "p75_ns", "high_ns", "mean_ns")
"""Columns of a box, shown when the pointer is on it."""


def _scale(most: float) -> dict[str, Any]:
    """Return scale and axis for spreads from 0 to the largest."""
    marks = [step * 10**power for power in range(3, 13) for step in (1, 2, 5)]
    ticks = [0.0, *(tick for tick in marks if tick <= most)]
    unit, expression = time_axis([most])
    return {
        "scale": alt.Scale(type="symlog", constant=_LINEAR_NS, domain=[0, most], nice=False),
        "axis": alt.Axis(values=ticks, labelExpr=expression, title=f"{_SPREAD}, {unit}", labelOverlap=True),
    }


def _levels(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the label of each level, in order."""
    names = in_order([row["level"] for row in rows])
    return dict(zip(names, tell_apart([visible(name) for name in names]), strict=True))


def boxes(table: Table) -> Drawing:
    """Draw a panel for each factor with a box for each level."""
    most = max(max(row["high_ns"], row["mean_ns"], *row["outliers"]) for row in table.rows)
    factors = in_order(table.column("factor"))
    panels = [
        _box_panel([row for row in table.rows if row["factor"] == factor], most, at % _PANELS == 0, len(factors) == 1)
        for at, factor in enumerate(factors)
    ]
    lines = [
        "Box: quartiles and median. Whiskers: within 1.5 boxes. Dots: beyond. Diamond: mean. n: GEMMs (kernel and "
        "input shapes on one GPU) called twice or more."
    ]
    return Drawing(
        _side_by_side(panels),
        f"Spread of GEMM times by {', '.join(map(visible, factors))}",
        lines + [_tested(table.rows, factor) for factor in factors],
        left_out(int(table.first["left_out"]), "outlier", "the smallest beyond the whiskers; the SQL has all"),
    )


def _tested(rows: Sequence[dict[str, Any]], factor: str) -> str:
    row = next(row for row in rows if row["factor"] == factor)
    name = visible(factor)
    if row["p_value"] is None:
        return f"{name}: not tested, since a level has {many(row['fewest_trials'], 'run')} and 3 are needed."
    verdict = "levels differ" if row["p_value"] < 0.01 else "no difference beyond chance"
    each = "one a run and rank" if factor == "rank" else "one a run"
    return f"{name}: {verdict}, {p_value_text(row['p_value'])} (Kruskal-Wallis over {row['trials']} medians, {each})."


def _side_by_side(panels: list[Any]) -> Any:
    return panels[0] if len(panels) == 1 else alt.concat(*panels, columns=_PANELS, spacing=24)


def _box_panel(rows: Sequence[dict[str, Any]], most: float, is_first: bool, is_alone: bool) -> Any:
    names = _levels(rows)
    shared = _scale(most)
    if not is_first:
        shared["axis"].title = None
    data = datasets.data(
        [
            {
                **{name: row[name] for name in _NUMBERS},
                "level": names[row["level"]],
                "count": f"n={row['gemms']:,}",
            }
            for row in rows
        ]
    )
    dots = datasets.data(
        [{"level": names[row["level"]], "spread_ns": value} for row in rows for value in row["outliers"]]
    )
    x = alt.X(
        "level",
        type="nominal",
        sort=list(names.values()),
        title=visible(rows[0]["factor"]),
        axis=alt.Axis(labelAngle=_angle(names.values()), labelLimit=160),
    )
    base = alt.Chart(data)
    tips = [alt.Tooltip(name, type="quantitative", format=",.0f") for name in _NUMBERS]

    def y(field: str) -> Any:
        return alt.Y(field, type="quantitative", **shared)

    whiskers = base.mark_rule(color=INK).encode(x=x, y=y("low_ns"), y2=alt.Y2("high_ns"))
    body = base.mark_bar(size=34, color=SKY, stroke=INK, strokeWidth=1).encode(
        x=x, y=y("p25_ns"), y2=alt.Y2("p75_ns"), tooltip=tips
    )
    middle = base.mark_tick(size=34, thickness=2.5, color=INK).encode(x=x, y=y("median_ns"))
    mean = base.mark_point(shape="diamond", filled=True, size=60, color=ORANGE, stroke=INK, strokeWidth=0.7).encode(
        x=x, y=y("mean_ns")
    )
    beyond = alt.Chart(dots).mark_point(size=14, color=INK, opacity=0.5).encode(x=x, y=y("spread_ns"))
    counts = base.mark_text(fontSize=11, color=FAINT).encode(
        x=x, y=alt.YValue(_ABOVE), text=alt.Text("count", type="nominal")
    )
    return alt.layer(whiskers, body, middle, beyond, mean, counts).properties(
        width=_width(len(names), is_alone), height=_HEIGHT
    )


def _width(levels: int, is_alone: bool) -> int:
    return max(110 * levels, 420) if is_alone else max(64 * levels, 120)


def _angle(texts: Any) -> int:
    return 0 if max(map(len, texts)) <= 9 else -40


def violins(table: Table) -> Drawing:
    """Draw a panel for each factor with a violin for each level."""
    most = max(table.column("spread_ns"))
    factors = in_order(table.column("factor"))
    panels = [
        _violin_panel(
            [row for row in table.rows if row["factor"] == factor], most, at % _PANELS == 0, len(factors) == 1
        )
        for at, factor in enumerate(factors)
    ]
    return Drawing(
        _side_by_side(panels),
        f"Distribution of the spread of GEMM times by {', '.join(map(visible, factors))}",
        [
            "Width: density (Gaussian kernel, Silverman's rule). n: GEMMs (kernel and input shapes on one GPU) called "
            "twice or more. A shape ends at the smallest and the largest spread of its level."
        ],
    )


def _violin_panel(rows: Sequence[dict[str, Any]], most: float, is_first: bool, is_alone: bool) -> Any:
    names = _levels(rows)
    places = {row["level"]: row["level_place"] for row in rows}
    counts = {row["level"]: f"n={row['gemms']:,}" for row in rows}
    shared = _scale(most)
    if not is_first:
        shared["axis"].title = None
    data = datasets.data(
        [
            {
                "level": names[row["level"]],
                "left": row["left_edge"],
                "right": row["right_edge"],
                "spread_ns": row["spread_ns"],
            }
            for row in rows
        ]
    )
    words = datasets.data(
        [{"place": places[level], "level": text, "count": counts[level]} for level, text in names.items()]
    )
    x = {"type": "quantitative", "scale": alt.Scale(domain=[0.4, max(places.values()) + 0.6], nice=False, zero=False)}
    shape = (
        alt.Chart(data)
        .mark_area(orient="horizontal", color=SKY, stroke=BLUE, strokeWidth=1, opacity=0.9)
        .encode(
            x=alt.X("left", axis=None, **x),
            x2=alt.X2("right"),
            y=alt.Y("spread_ns", type="quantitative", **shared),
            detail=alt.Detail("level", type="nominal"),
        )
    )
    angle = _angle(names.values())
    labels = (
        alt.Chart(words)
        .mark_text(fontSize=12, color=INK, angle=(360 + angle) % 360, align="right" if angle else "center", limit=160)
        .encode(x=alt.X("place", axis=None, **x), y=alt.YValue(_HEIGHT + 14), text=alt.Text("level", type="nominal"))
    )
    above = (
        alt.Chart(words)
        .mark_text(fontSize=11, color=FAINT)
        .encode(x=alt.X("place", axis=None, **x), y=alt.YValue(-8), text=alt.Text("count", type="nominal"))
    )
    title = (
        alt.Chart(datasets.data([{"factor": visible(rows[0]["factor"])}]))
        .mark_text(fontSize=12, color=INK)
        .encode(
            x=alt.XValue(_width(len(names), is_alone) / 2),
            y=alt.YValue(_HEIGHT + (90 if angle else 36)),
            text=alt.Text("factor", type="nominal"),
        )
    )
    return alt.layer(shape, labels, above, title).properties(width=_width(len(names), is_alone), height=_HEIGHT)


def interaction(table: Table) -> Drawing:
    """Draw the mean spread over the levels of one factor, a line for each level of another."""
    first = table.first
    own, other = visible(first["factor"]), visible(first["other_factor"])
    names = _levels(table.rows)
    others = in_order([row["other_level"] for row in table.rows])
    shown = dict(zip(others, tell_apart([visible(name) for name in others]), strict=True))
    places = {row["other_level"]: row["other_place"] for row in table.rows}
    order = [shown[name] for name in sorted(others, key=lambda name: places[name])]
    values = [value for row in table.rows for value in (row["mean_ns"], row["low_ns"], row["high_ns"])]
    channel = time_channel(values, f"mean {_SPREAD}", "zero")
    data = datasets.data(
        [
            {
                "level": names[row["level"]],
                "other": shown[row["other_level"]],
                **{name: row[name] for name in ("mean_ns", "low_ns", "high_ns", "median_ns", "gemms", "runs")},
            }
            for row in table.rows
        ]
    )
    x = alt.X("other", type="nominal", sort=order, title=other, axis=alt.Axis(labelAngle=_angle(order)))
    colour = alt.Color(
        "level",
        type="nominal",
        sort=list(names.values()),
        title=own,
        scale=alt.Scale(domain=list(names.values()), range=SERIES[: len(names)]),
    )
    base = alt.Chart(data)
    y = alt.Y("mean_ns", type="quantitative", **channel)
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
        x=x, y=alt.Y("low_ns", type="quantitative", **channel), y2=alt.Y2("high_ns"), color=colour
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        tooltip=[
            alt.Tooltip(field, type="quantitative", format=",.0f")
            for field in ("mean_ns", "median_ns", "gemms", "runs")
        ],
    )
    number, runs = (_from_to(table.column(name)) for name in ("gemms", "runs"))
    mixed = (
        f"{runs} runs in a point, which may mix other settings: --where chooses"
        if runs != "1"
        else "one run in a point"
    )
    return Drawing(
        alt.layer(lines, bars, points).properties(width=max(120 * len(order), 300), height=_HEIGHT),
        f"Mean spread of GEMM times by {own} and {other}",
        [
            f"n = {number} GEMMs (kernel and input shapes on one GPU, called twice or more) of {mixed}. "
            "Bars: standard error of the mean, as if GEMMs of one run were independent, which they are not. "
            "Parallel lines: no interaction."
        ],
    )


def _from_to(values: Sequence[Any]) -> str:
    """Return the smallest and the largest of some counts, once if they are equal."""
    return " to ".join(f"{value:,}" for value in sorted({min(values), max(values)}))
