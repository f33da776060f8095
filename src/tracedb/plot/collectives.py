"""Latency and bandwidth of collectives by message size."""

from __future__ import annotations

from typing import Any

import altair as alt

from tracedb.output.shorten import visible
from tracedb.plot import datasets
from tracedb.plot.captions import in_order, left_out, many
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import SERIES, size_expression, time_channel

_SIZE = (760, 380)
_FEW_SIZES = 6
"""At most this many message sizes stand side by side, as in training; more form an axis, as in a sweep over sizes."""
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right"]


def latency(table: Table) -> Drawing:
    """Draw the median latency of each size, with its range."""
    ends = [*table.column("latency_min_ns"), *table.column("latency_max_ns")]
    channel = time_channel(ends, "latency: shortest duration over ranks", "log")
    return _drawn(
        table,
        "latency_median_ns",
        channel,
        "Latency of collectives by message size",
        "Points: median over calls; bars: shortest to longest.",
    )


def bandwidth(table: Table) -> Drawing:
    """Draw the bus bandwidth of each size."""
    channel = {"scale": {"zero": True}, "axis": {"title": "bus bandwidth, GB/s"}}
    return _drawn(
        table,
        "bus_gbps",
        channel,
        "Bus bandwidth of collectives by message size",
        "Points: total bytes over total latency, times the factor that nccl-tests uses for the collective.",
    )


def _drawn(table: Table, field: str, channel: dict[str, Any], title: str, said: str) -> Drawing:
    rows = [(place, row) for place, row in zip(table.places, table.rows, strict=True) if row[field] is not None]
    places = in_order([place for place, _ in rows])
    kinds = in_order([visible(str(row["collective"])) for _, row in rows])
    is_few = len({row["message_bytes"] for _, row in rows}) <= _FEW_SIZES
    x, offset = _side_by_side(places, kinds) if is_few else (_axis_of_sizes(), {})
    y = alt.Y("value", type="quantitative", **channel)
    colour = _colour("place", table.place_header, places) if len(places) > 1 else _colour("collective", "", kinds)
    shape = alt.Shape(
        "collective",
        type="nominal",
        sort=kinds,
        title="collective",
        scale=alt.Scale(domain=kinds, range=[_SHAPES[at % len(_SHAPES)] for at in range(len(kinds))]),
    )
    base = alt.Chart(_data(rows, field))
    layers = []
    if not is_few:
        layers.append(
            base.mark_line(strokeWidth=1, opacity=0.5).encode(
                x=x, y=y, color=colour, detail=alt.Detail("series", type="nominal")
            )
        )
    if field == "latency_median_ns":
        layers.append(
            base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(
                x=x, y=alt.Y("low", type="quantitative", **channel), y2=alt.Y2("high"), color=colour, **offset
            )
        )
    layers.append(
        base.mark_point(filled=True, size=60, opacity=0.9).encode(
            x=x,
            y=y,
            color=colour,
            shape=shape,
            **offset,
            tooltip=[
                alt.Tooltip("place", type="nominal"),
                alt.Tooltip("collective", type="nominal"),
                *(
                    alt.Tooltip(name, type="quantitative", format=",.3~f")
                    for name in ("message_bytes", "value", "calls")
                ),
            ],
        )
    )
    return Drawing(
        alt.layer(*layers).properties(width=_SIZE[0], height=_SIZE[1]),
        title,
        [f"{said} n = {many(int(table.first['all_calls']), 'call')}."],
        _missing(table),
    )


def _axis_of_sizes() -> alt.X:
    return alt.X(
        "message_bytes",
        type="quantitative",
        scale=alt.Scale(type="log", base=2, nice=False, padding=20),
        axis=alt.Axis(labelExpr=size_expression(), title="message size", labelOverlap=True, tickCount=10),
    )


def _side_by_side(places: list[str], kinds: list[str]) -> tuple[alt.X, dict[str, alt.XOffset]]:
    """Return a band for each size, and the place of a point in it: by configuration, else by collective."""
    x = alt.X(
        "message_bytes",
        type="ordinal",
        scale=alt.Scale(paddingInner=0.15, paddingOuter=0.1),
        axis=alt.Axis(labelExpr=size_expression(), title="message size", labelAngle=0, grid=False),
    )
    name, order = ("place", places) if len(places) > 1 else ("collective", kinds)
    return x, {"xOffset": alt.XOffset(name, type="nominal", sort=order)}


def _data(rows: list[tuple[str, dict[str, Any]]], field: str) -> alt.NamedData:
    return datasets.data(
        [
            {
                "place": place,
                "collective": visible(str(row["collective"])),
                "message_bytes": row["message_bytes"],
                "value": row[field],
                "low": row["latency_min_ns"],
                "high": row["latency_max_ns"],
                "calls": row["calls"],
                "series": f"{place} {row['collective']} {row['dtype']} {row['group_size']}",
            }
            for place, row in rows
        ]
    )


def _colour(field: str, title: str, domain: list[str]) -> alt.Color:
    return alt.Color(
        field,
        type="nominal",
        sort=domain,
        title=title or field,
        scale=alt.Scale(domain=domain, range=[SERIES[at % len(SERIES)] for at in range(len(domain))]),
        legend=alt.Legend(symbolLimit=60, symbolOpacity=1),
    )


def _missing(table: Table) -> list[str]:
    """Return sentences about sizes and calls that are not drawn."""
    first = table.first
    missing = left_out(int(first["left_out"]), "size", "2,000 points are drawn; --where chooses")
    if first["unsized_calls"]:
        missing.append(f"{many(int(first['unsized_calls']), 'call')} without a recorded size or latency not drawn.")
    if first["unmatched"]:
        missing.append(
            f"{many(int(first['unmatched']), 'call')} of one rank alone not drawn: waiting and transfer cannot "
            "be told apart."
        )
    return missing
