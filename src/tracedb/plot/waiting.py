"""How long each rank waits for others, by step."""

from __future__ import annotations

from typing import Any

import altair as alt

from tracedb.plot import datasets
from tracedb.plot.captions import in_order, left_out, many
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import RED, time_axis

_MOST_NUMBERS = 400
"""Cells that are labelled with their number; with more, the labels would not fit."""
_NO_STEP = "outside"
_TIPS = ("wait_ns", "wait_percent", "wait_caused_ns", "calls")


def cells(table: Table) -> Drawing:
    """Draw a heat map of ranks and steps for each configuration."""
    has_numbers = len(table.rows) <= _MOST_NUMBERS
    is_named = any(table.places)
    chart = (
        alt.layer(*_layers(table, has_numbers))
        .properties(width=alt.Step(46 if has_numbers else 20), height=alt.Step(24 if has_numbers else 16))
        .facet(
            facet=alt.Facet(
                "panel",
                type="nominal",
                sort=in_order(table.places),
                title=None,
                header=alt.Header(labelAnchor="start") if is_named else alt.Header(labels=False, labelPadding=0),
            ),
            columns=4,
            spacing=26,
        )
    )
    named = any(row["is_straggler"] for row in table.rows)
    panels = f"Panels: {table.place_header}. " if table.place_header else ""
    lines = [
        f"{panels}Waiting of a rank in a step: its time in collectives beyond that of the fastest rank, summed over "
        f"calls. n = {many(table.first['shown_calls'], 'value')}, one for each call and rank."
    ]
    lines += ["Orange frames: the straggler, for which the other ranks wait."] if named else []
    return Drawing(
        chart,
        "Waiting for other ranks in collectives",
        lines,
        left_out(table.first["left_out"], "cell", "24 runs, 100 steps and 256 ranks are drawn; --where chooses"),
    )


def _step(row: dict[str, Any]) -> str:
    return _NO_STEP if row["step"] is None else str(row["step"])


def _data(table: Table) -> alt.NamedData:
    return datasets.data(
        [
            {
                "panel": panel,
                "step": _step(row),
                "rank": str(row["rank"]),
                "straggler": bool(row["is_straggler"]),
                **{name: row[name] for name in _TIPS},
            }
            for panel, row in zip(table.places, table.rows, strict=True)
        ]
    )


def _layers(table: Table, has_numbers: bool) -> list[alt.Chart]:
    """Return the squares, the frames of stragglers and, if wanted, the numbers."""
    unit, expression = time_axis(table.column("wait_ns"))
    most = table.first["most_wait_ns"] or 1
    steps = in_order(
        [_step(row) for row in sorted(table.rows, key=lambda row: (row["step"] is None, row["step"] or 0))]
    )
    by_rank = sorted(table.rows, key=lambda row: (row["rank"] is None, row["rank"]))
    ranks = in_order([str(row["rank"]) for row in by_rank])
    x = alt.X(
        "step",
        type="nominal",
        sort=steps,
        title="step" if steps != [_NO_STEP] else "no steps are marked",
        axis=alt.Axis(labelAngle=0, ticks=False, domain=False, labelOverlap=True, labels=steps != [_NO_STEP]),
    )
    y = alt.Y("rank", type="nominal", sort=ranks, title="rank", axis=alt.Axis(ticks=False, domain=False))
    base = alt.Chart(_data(table))
    squares = base.mark_rect(stroke="white", strokeWidth=1).encode(
        x=x,
        y=y,
        color=alt.Color(
            "wait_ns",
            type="quantitative",
            title=f"waiting, {unit}",
            scale=alt.Scale(scheme="blues", domain=[0, most]),
            legend=alt.Legend(labelExpr=expression.replace(",~f", ",.1f")) if table.first["most_wait_ns"] else None,
        ),
        tooltip=[
            alt.Tooltip("rank", type="nominal"),
            alt.Tooltip("step", type="nominal"),
            *(alt.Tooltip(name, type="quantitative", format=",.1~f") for name in _TIPS),
        ],
    )
    frames = (
        base.transform_filter("datum.straggler").mark_rect(fillOpacity=0, stroke=RED, strokeWidth=2).encode(x=x, y=y)
    )
    if not has_numbers:
        return [squares, frames]
    divisor = expression.split("/")[1].split(",")[0].strip()
    numbers = (
        base.mark_text(fontSize=11)
        .encode(
            x=x,
            y=y,
            text=alt.Text("shown:N"),
            color=alt.condition(f"datum.wait_ns > {most} * 0.55", alt.value("white"), alt.value("#222222")),
        )
        .transform_calculate(shown=f"format(datum.wait_ns / {divisor}, ',.1f')")
    )
    return [squares, frames, numbers]
