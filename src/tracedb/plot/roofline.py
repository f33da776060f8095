"""The roofline: rate against intensity of operators, below the roof of their device."""

from __future__ import annotations

from typing import Any

import altair as alt

from tracedb.output.shorten import visible
from tracedb.plot import datasets
from tracedb.plot.captions import in_order, left_out
from tracedb.plot.definition import Drawing, Table
from tracedb.plot.theme import FAINT, SERIES, size_values

_SIZE = (760, 420)
_MOST_NAMED = 11
_MANY = 200
"""Points that may cover each other; of more, those below show through."""


def points(table: Table) -> Drawing:
    """Draw each operator and shape as a point, its area by GPU time, and the roof of each element type."""
    x = alt.X(
        "intensity",
        type="quantitative",
        scale=alt.Scale(type="log", nice=False, domain=[table.first["low_intensity"], table.first["high_intensity"]]),
        axis=alt.Axis(title="intensity, FLOP per byte", labelOverlap=True, tickCount=8),
    )
    y = alt.Y(
        "tflops",
        type="quantitative",
        scale=alt.Scale(type="log", nice=True),
        axis=alt.Axis(title="rate, TFLOP/s", labelOverlap=True, tickCount=8),
    )
    names = _named(table)
    colour = alt.Color(
        "operator",
        type="nominal",
        sort=names,
        title="operator",
        scale=alt.Scale(domain=names, range=SERIES[: len(names)]),
        legend=alt.Legend(symbolLimit=20, symbolOpacity=1),
    )
    marks = (
        alt.Chart(_points(table, names))
        .mark_point(filled=True, opacity=0.75 if len(table.rows) <= _MANY else 0.35)
        .encode(
            x=x,
            y=y,
            color=colour,
            size=alt.Size(
                "gpu_ms",
                type="quantitative",
                title="GPU time, ms",
                scale=alt.Scale(range=[25, 600], domain=[0, max(table.column("gpu_ms"))]),
                legend=alt.Legend(values=size_values(max(table.column("gpu_ms"))), symbolOpacity=0.75),
            ),
            tooltip=[
                *(alt.Tooltip(name, type="nominal") for name in ("place", "name", "shapes", "type", "bound")),
                *(
                    alt.Tooltip(name, type="quantitative", format=",.3~f")
                    for name in ("intensity", "tflops", "of_roof", "gpu_ms", "calls")
                ),
            ],
        )
    )
    roofs = _roofs(table)
    line = alt.Chart(datasets.data(roofs)).mark_line(strokeWidth=1.5, color=FAINT)
    said = alt.Chart(datasets.data([row for row in roofs if row["is_end"]])).mark_text(
        align="right", baseline="bottom", dy=-4, color=FAINT, fontSize=11
    )
    layers = [
        line.encode(
            x=x, y=y, detail=alt.Detail("roof", type="nominal"), order=alt.Order("intensity", type="quantitative")
        ),
        said.encode(x=x, y=y, text=alt.Text("roof", type="nominal")),
        marks,
    ]
    return Drawing(
        alt.layer(*layers).properties(width=_SIZE[0], height=_SIZE[1]),
        "Roofline of operators",
        ["Points: operators by shape, area by GPU time; lines: bandwidth, then peak rate of the element type."],
        _missing(table),
    )


def _named(table: Table) -> list[str]:
    """Return the operators that have a colour of their own, those with most time first, and a word for the others."""
    names = in_order([visible(str(row["name"])) for row in sorted(table.rows, key=lambda row: -int(row["gpu_ns"]))])
    return names if len(names) <= _MOST_NAMED + 1 else [*names[:_MOST_NAMED], "others"]


def _points(table: Table, names: list[str]) -> Any:
    return datasets.data(
        [
            {
                "place": place,
                "name": visible(str(row["name"])),
                "operator": visible(str(row["name"])) if visible(str(row["name"])) in names else "others",
                "shapes": visible(str(row["input_dims"])),
                "type": row["math_dtype"],
                "bound": row["bound"],
                "intensity": row["intensity"],
                "tflops": row["tflops"],
                "of_roof": row["peak_percent"],
                "gpu_ms": row["gpu_ms"],
                "calls": row["calls"],
            }
            for place, row in zip(table.places, table.rows, strict=True)
        ]
    )


def _roofs(table: Table) -> list[dict[str, Any]]:
    """Return three points for each roof: at the lowest intensity, at the ridge, at the highest intensity."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in table.rows:
        if row["peak_tflops"] is None or row["peak_gbps"] is None:
            continue
        name = f"{row['math_dtype']} {row['peak_tflops']:,.4g} TFLOP/s, {row['peak_gbps']:,.4g} GB/s"
        corners = (
            (row["low_intensity"], row["low_tflops"], False),
            (row["ridge_intensity"], row["peak_tflops"], False),
            (row["high_intensity"], row["peak_tflops"], True),
        )
        rows[name] = [
            {"roof": name, "intensity": intensity, "tflops": tflops, "is_end": is_end}
            for intensity, tflops, is_end in corners
        ]
    return [corner for name in sorted(rows) for corner in rows[name]]


def _missing(table: Table) -> list[str]:
    """Return sentences about operators that are not drawn."""
    first = table.first
    missing = left_out(int(first["left_out"]), "operator and shape", "2,000 points are drawn; --where chooses")
    if first["shown_percent"] is not None and first["shown_percent"] < 99.5:
        missing.append(
            f"{first['shown_percent']:.0f} % of the operators' GPU time is drawn: FLOPs and bytes of the rest are "
            f"not both known; the largest is {visible(str(first['largest_left']))} with "
            f"{first['largest_left_percent']:.0f} % of the time"
        )
    if first["memory_alone_ms"]:
        missing.append(
            f"{first['memory_alone_ms']:,.1f} ms bound by memory is not drawn: operators with known bytes and no "
            "FLOPs, such as copies"
        )
    if all(row["peak_tflops"] is None for row in table.rows):
        missing.append("No roof: the device is not in device_peak")
    return missing
