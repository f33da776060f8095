"""Text in pictures: counts, p-values, names and places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from tracedb.output.shorten import shorten
from tracedb.plot.definition import Table

NAME_WIDTH = 100


def many(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def p_value_text(p_value: float | None) -> str:
    """Return a p-value in words."""
    if p_value is None:
        return "not tested"
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def one_name(name: str) -> str:
    """Return the name of one kernel, shortened for a line of text."""
    return shorten([name], NAME_WIDTH)[0]


def gpus(table: Table, chosen: Sequence[bool] | None = None) -> list[str]:
    """Return the GPU of each row, or each chosen row, in words: its place, and its device if a capture has several."""
    rows = list(compress(zip(table.rows, table.places, strict=True), chosen or [True] * len(table.rows)))
    devices = {(row["capture_id"], row["device_id"]) for row, _ in rows}
    has_several = len(devices) > len({capture for capture, _ in devices})
    texts = []
    for row, place in rows:
        device = f"GPU {row['device_id']}" if has_several or not place else ""
        texts.append(" · ".join(part for part in (place, device) if part))
    return texts


def in_order(texts: Sequence[str]) -> list[str]:
    """Return each text once, in the order of first appearance."""
    return list(dict.fromkeys(texts))


def left_out(count: int, noun: str, hint: str) -> list[str]:
    """Return the sentence that says how many things are not drawn; empty if all are."""
    if not count:
        return []
    return [f"{many(count, noun)} {'is' if count == 1 else 'are'} left out: {hint}"]
