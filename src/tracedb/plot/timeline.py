"""The parts of GPU time in each configuration."""

from __future__ import annotations

import altair as alt

from tracedb.plot import datasets
from tracedb.plot.captions import in_order, left_out, many
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import INK, PARTS, time_channel

_LIGHT = ("idle", "exposed copy")
_LABELLED = 5
"""Percent of its bar and of the longest bar that a part must have for its label to fit."""


def stacks(table: Table) -> Drawing:
    """Draw a bar for each configuration, divided into the parts of its time."""
    bars = [f"{place or 'all'} (n={row['ranks']})" for place, row in zip(table.places, table.rows, strict=True)]
    y = alt.Y(
        "bar",
        type="nominal",
        sort=in_order(bars),
        title=None,
        axis=alt.Axis(ticks=False, domain=False),
    )
    channel = time_channel(table.column("to_ns"), "mean time of a GPU from its first to its last event", "zero")
    channel["axis"]["tickCount"] = 10
    base = alt.Chart(_data(table, bars))
    blocks = base.mark_bar().encode(
        x=alt.X("from_ns", type="quantitative", **channel),
        x2=alt.X2("to_ns"),
        y=y,
        color=alt.Color(
            "part",
            type="nominal",
            title=None,
            scale=alt.Scale(domain=list(PARTS), range=list(PARTS.values())),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=[
            alt.Tooltip("part", type="nominal"),
            alt.Tooltip("mean_ns", type="quantitative", format=",.0f"),
            alt.Tooltip("mean_percent", type="quantitative", format=".1f"),
        ],
    )
    shares = base.mark_text(fontSize=11).encode(
        x=alt.X("middle_ns", type="quantitative", **channel),
        y=y,
        text=alt.Text("share", type="nominal"),
        color=alt.Color("ink", type="nominal", scale=None),
    )
    header = f"Bars: {table.place_header}. " if table.place_header else ""
    return Drawing(
        alt.layer(blocks, shares).properties(width=760, height=alt.Step(26)),
        "GPU time by configuration",
        [
            f"{header}A bar is a whole recording, with all its steps. n: number of GPUs averaged. Percentages are of "
            "the bar; narrow parts are not labelled."
        ],
        left_out(table.first["left_out"], "configuration", f"the first {many(60, 'bar')} are drawn; --where chooses"),
        in_order(bars),
    )


def _data(table: Table, bars: list[str]) -> alt.NamedData:
    longest = max(table.column("to_ns"))
    values = []
    for bar, row in zip(bars, table.rows, strict=True):
        part, percent = row["part"].replace("_", " "), row["mean_percent"]
        values.append(
            {
                "bar": bar,
                "part": part,
                "share": ""
                if percent is None or min(percent, 100 * row["mean_ns"] / longest) < _LABELLED
                else f"{percent:.0f} %",
                "ink": INK if part in _LIGHT else "white",
                **{name: row[name] for name in ("from_ns", "to_ns", "middle_ns", "mean_ns", "mean_percent")},
            }
        )
    return datasets.data(values)
