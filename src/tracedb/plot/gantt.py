"""GPU activity over time, by stream."""

from __future__ import annotations

import altair as alt

from tracedb.output.shorten import shorten, visible
from tracedb.plot import datasets
from tracedb.plot.captions import gpus, in_order, left_out, many
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import class_scale, time_axis

_WIDTH = 1000
_LANE = 18
_CLOCKS = {
    "recorded": "Clocks of the ranks are compared as recorded: no alignment is known.",
    "incomparable": "Clocks cannot be compared: each capture begins at its own first event.",
}


def bars(table: Table) -> Drawing:
    """Draw a bar for each event in the row of its stream."""
    lanes = [
        " · ".join(part for part in (gpu, row["lane"] or "stream not recorded") if part)
        for gpu, row in zip(gpus(table), table.rows, strict=True)
    ]
    start, end = table.choice.window or (0, max(table.column("until_ns")))
    unit, expression = time_axis([end])
    scale = class_scale(set(table.column("class")))
    legend = alt.Legend(orient="top", columns=10)
    chart = (
        alt.Chart(_data(table, lanes))
        .mark_rect(clip=True, strokeWidth=0.4, height=_LANE - 4)
        .encode(
            x=alt.X(
                "since_ns",
                type="quantitative",
                scale=alt.Scale(domain=[start, end], nice=False, zero=False),
                axis=alt.Axis(
                    labelExpr=expression,
                    labelOverlap=True,
                    labelSeparation=8,
                    title=f"time since the first event shown, {unit}",
                    grid=True,
                ),
            ),
            x2="until_ns",
            y=alt.Y(
                "lane",
                type="nominal",
                sort=in_order(lanes),
                title=None,
                axis=alt.Axis(grid=True, tickBand="extent", ticks=False, domain=False),
            ),
            color=alt.Color("class", type="nominal", title=None, scale=scale, legend=legend),
            stroke=alt.Stroke("class", type="nominal", title=None, scale=scale, legend=legend),
            tooltip=[
                alt.Tooltip("name", type="nominal"),
                alt.Tooltip("class", type="nominal"),
                alt.Tooltip("since_ns", type="quantitative", format=",.0f"),
                alt.Tooltip("duration_ns", type="quantitative", format=",.0f"),
            ],
        )
        .properties(width=_WIDTH, height=alt.Step(_LANE))
    )
    clocks = [_CLOCKS[clock] for clock in in_order(table.column("clock")) if clock in _CLOCKS]
    step = "" if table.choice.step is None else f" in step {table.choice.step}"
    shown = f"n = {len(table.rows):,} of {many(table.first['all_events'], 'event')}."
    return Drawing(chart, f"GPU activity by stream{step}", [shown, *clocks], _missing(table))


def _data(table: Table, lanes: list[str]) -> alt.NamedData:
    names = dict(zip(table.column("name"), shorten([visible(name) for name in table.column("name")], 120), strict=True))
    kept = ("since_ns", "until_ns", "duration_ns", "class")
    return datasets.data(
        [
            {"lane": lane, "name": names[row["name"]], **{name: row[name] for name in kept}}
            for lane, row in zip(lanes, table.rows, strict=True)
        ]
    )


def _missing(table: Table) -> list[str]:
    """Return sentences about streams and events that are not drawn."""
    first = table.first
    missing = left_out(
        first["other_lanes"],
        "stream",
        f"they have {many(first['events_of_other_lanes'], 'event')}; filters such as --rank choose others",
    )
    if first["shorter_events"]:
        missing.append(
            f"the {many(first['shorter_events'], 'shortest event')} on these streams are left out, "
            f"{first['shorter_percent']:.2g} % of the summed time; --step or --window looks closer"
        )
    return missing
