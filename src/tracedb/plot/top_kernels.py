"""Total time by kernel name."""

from __future__ import annotations

from typing import Any

import altair as alt

from tracedb.output.shorten import brief, shorten
from tracedb.plot import datasets
from tracedb.plot.captions import in_order, left_out, many
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import FAINT, class_scale, time_channel

_NAME = 56
"""Letters of a name at most."""
_FEW = 0.05
"""Percent of the time below which what is left out is not worth a number."""


def bars(table: Table) -> Drawing:
    """Draw a bar for each kernel name, longest first; a panel for each --by group."""
    values = _values(table)
    data = datasets.data(values)
    y = alt.Y(
        "name",
        type="nominal",
        sort=alt.EncodingSortField(field="place", op="min"),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=440),
    )
    channel = time_channel(table.column("total_ns"), "total time of the kernels of this name", "zero")
    channel["axis"]["tickCount"] = 8
    bar = (
        alt.Chart(data)
        .mark_bar(height={"band": 0.78})
        .encode(
            x=alt.X("total_ns", type="quantitative", **channel),
            y=y,
            color=alt.Color(
                "class",
                type="nominal",
                title=None,
                scale=class_scale(set(table.column("class"))),
                legend=alt.Legend(orient="top", columns=7, symbolType="square"),
            ),
            tooltip=[
                alt.Tooltip("full_name", type="nominal", title="kernel"),
                alt.Tooltip("class", type="nominal"),
                *(alt.Tooltip(name, type="quantitative", format=",.0f") for name in ("total_ns", "calls", "median_ns")),
            ],
        )
    )
    share = (
        alt.Chart(data)
        .mark_text(align="left", dx=5, fontSize=11, color=FAINT)
        .encode(x=alt.X("total_ns", type="quantitative", **channel), y=y, text=alt.Text("share", type="nominal"))
    )
    chart: Any = alt.layer(bar, share, data=data).properties(width=620, height=alt.Step(22))
    panels = in_order(_panels(table))
    if len(panels) > 1:
        header = alt.Header(labelAngle=0, labelAlign="left", labelAnchor="start", labelOrient="top", labelFontSize=13)
        chart = chart.facet(
            row=alt.Row("panel", type="nominal", sort=panels, title=None, header=header), spacing=12
        ).resolve_scale(y="independent")
    labels = [str(value["name"]) for value in values]
    return Drawing(chart, "Kernels with most time", _lines(table), _missing(table, len(panels)), labels)


def _values(table: Table) -> list[dict[str, Any]]:
    names = table.column("name")
    short = brief(names, dict(zip(names, table.column("short_name"), strict=True)))
    labels = dict(zip(names, shorten(short, _NAME), strict=True))
    kept = ("class", "place", "total_ns", "calls", "median_ns")
    return [
        {
            "panel": panel,
            "name": labels[row["name"]],
            "full_name": shorten([row["name"]], 160)[0],
            "share": _share(row),
            **{name: row[name] for name in kept},
        }
        for panel, row in zip(_panels(table), table.rows, strict=True)
    ]


def _share(row: dict[str, Any]) -> str:
    percent, calls = row["share_percent"], many(row["calls"], "call")
    return calls if percent is None else f"{percent:.1f} % · {calls}"


def _panels(table: Table) -> list[str]:
    """Return the panel of each row: the --by column and its value."""
    return [f"{table.place_header} {place}".strip() for place in table.places]


def _lines(table: Table) -> list[str]:
    of = "the kernels of the panel" if table.place_header else "all kernels"
    calls = many(table.first["all_calls"], "call")
    return [f"Bars: sum of durations. Percentages are of the time of {of}. n = {calls}."]


def _missing(table: Table, panels: int) -> list[str]:
    first = table.first
    missing = left_out(first["left_out"], "panel", "the first 12 are drawn; --where and --rank choose")
    if panels > 1:
        return missing + left_out(first["other_names"], "bar", "a panel has the 10 kernel names with most time")
    rest = first["other_percent"]
    share = "none" if rest is None else f"less than {_FEW} %" if rest < _FEW else f"{rest:.2g} %"
    return missing + left_out(first["other_names"], "kernel name", f"they have {share} of the time")
