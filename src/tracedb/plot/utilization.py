"""How busy GPUs are over time."""

from __future__ import annotations

import altair as alt

from tracedb.plot import datasets
from tracedb.plot.captions import gpus, in_order, left_out
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import GREY, PARTS, time_axis

_WIDTH = 900
_WINDOW = "Windows: a 120th of the time from the GPU's first event to its last one."


def _time(table: Table) -> alt.X:
    unit, expression = time_axis(table.column("until_ns"))
    title = f"time since the GPU's first event, {unit}"
    axis = alt.Axis(labelExpr=expression, title=title, grid=False, labelOverlap=True, labelSeparation=8)
    return alt.X("since_ns", type="quantitative", scale=alt.Scale(nice=False), axis=axis)


def _data(table: Table, places: list[str], columns: tuple[str, ...]) -> alt.NamedData:
    return datasets.data(
        [
            {"gpu": place, **{name: row[name] for name in ("since_ns", "until_ns", *columns)}}
            for place, row in zip(places, table.rows, strict=True)
        ]
    )


def areas(table: Table) -> Drawing:
    """Draw a panel for each GPU: stacked shares of each time window."""
    places = gpus(table)
    order = in_order(places)
    parts = {name: colour for name, colour in PARTS.items() if name != "idle"}
    if any(row["part"] == "other work" for row in table.rows):
        parts["other work"] = GREY
    panel = (
        alt.Chart(_data(table, places, ("part", "low_percent", "high_percent", "percent")))
        .mark_rect()
        .encode(
            x=_time(table),
            x2=alt.X2("until_ns"),
            y=alt.Y(
                "low_percent",
                type="quantitative",
                scale=alt.Scale(domain=[0, 100]),
                axis=alt.Axis(values=[0, 50, 100], title="%"),
            ),
            y2=alt.Y2("high_percent"),
            color=alt.Color(
                "part",
                type="nominal",
                title=None,
                scale=alt.Scale(domain=list(parts), range=list(parts.values())),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("part", type="nominal"),
                alt.Tooltip("percent", type="quantitative", format=".1f"),
                alt.Tooltip("since_ns", type="quantitative", format=",.0f"),
            ],
        )
        .properties(width=_WIDTH, height=70)
    )
    chart = panel.facet(
        row=alt.Row(
            "gpu",
            type="nominal",
            sort=order,
            title=None,
            header=alt.Header(labelAngle=0, labelAlign="left", labelPadding=8),
        ),
        spacing=12,
    )
    return Drawing(
        chart,
        "GPU utilization over time",
        [f"Share of time that something runs. {_WINDOW} n = {len(order)} {'GPU' if len(order) == 1 else 'GPUs'}."],
        left_out(
            table.first["left_out"], "GPU", "12 are drawn; --rank and --where choose, utilization-map has room for 64"
        ),
        order,
    )


def cells(table: Table) -> Drawing:
    """Draw a row for each GPU: how busy it is in each window of time."""
    places = gpus(table)
    order = in_order(places)
    chart = (
        alt.Chart(_data(table, places, ("busy_percent",)))
        .mark_rect()
        .encode(
            x=_time(table),
            x2=alt.X2("until_ns"),
            y=alt.Y("gpu", type="nominal", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color(
                "busy_percent", type="quantitative", title="busy, %", scale=alt.Scale(scheme="viridis", domain=[0, 100])
            ),
            tooltip=[
                alt.Tooltip("gpu", type="nominal"),
                alt.Tooltip("busy_percent", type="quantitative", format=".1f"),
                alt.Tooltip("since_ns", type="quantitative", format=",.0f"),
            ],
        )
        .properties(width=_WIDTH, height=alt.Step(16))
    )
    rows = f"Rows: {table.place_header}. " if table.place_header else ""
    return Drawing(
        chart,
        "How busy GPUs are over time",
        [f"{rows}{_WINDOW} n = {len(order)} {'GPU' if len(order) == 1 else 'GPUs'}."],
        left_out(table.first["left_out"], "GPU", "64 are drawn; --rank and --where choose"),
        order,
    )
