"""``tracedb why``: what keeps a step from the peak of the hardware, in words, from the answer of ``report why``."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracedb.output.shorten import visible

if TYPE_CHECKING:
    from tracedb.report.run import Found

REASONS = 5
"""Reasons on the page, for each recording."""
WIDTH = 100
"""Width of the page in characters; queries are not wrapped."""
Row = Mapping[str, Any]


def page(found: Found, reasons: int = REASONS) -> str:
    """Return the page: for each recording its reasons by share, the rest, and what the recording cannot tell."""
    names = [column.name for column in found.answer.columns]
    rows = [dict(zip(names, row, strict=True)) for row in found.answer.rows]
    sources = {row["source"] for row in rows}
    recordings: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        source = f"source {row['source']}" if len(sources) > 1 else ""
        setting = " ".join(filter(None, (source, _setting(row))))
        recordings.setdefault((setting, str(row["cycle"] or "")), []).append(row)
    lines: list[str] = []
    for (setting, cycle), of_recording in recordings.items():
        lines += [*_recording(setting, cycle, of_recording, reasons), ""]
    unknown = [text.removeprefix("not known: ") for text in found.gist if text.startswith("not known: ")]
    if unknown:
        lines += ["What this recording cannot tell:", *(line for text in unknown for line in _wrapped(text, "- "))]
    return "\n".join(map(visible, lines)).rstrip() + "\n"


def _recording(setting: str, cycle: str, rows: list[Row], reasons: int) -> list[str]:
    first = rows[0]
    where = "".join([f" of {setting}" if setting else "", f", recording {cycle}" if cycle else ""])
    count = first["steps"]
    length = f"{count} step{'' if count == 1 else 's'}" if count else "the whole recording, as no steps are marked"
    lines = [f"What keeps the step{where} from the hardware's peak ({length}):"]
    ranked = [row for row in rows if row["place"] is not None]
    for row in ranked[:reasons]:
        lines += ["", *_reason(row)]
    rest = sum(row["time_ns"] for row in ranked[reasons:])
    judged = sum(row["time_ns"] for row in rows if row["place"] is None)
    whole = first["wall_ns"]
    smaller = f"Smaller reasons: {_percent(rest, whole)}. "
    return [*lines, "", f"{smaller}Computation at the roof, or that cannot be judged: {_percent(judged, whole)}."]


def _reason(row: Row) -> list[str]:
    place = f"{row['place']}. "
    rank = ""
    if row["worst_rank"] is not None and row["worst_percent"] is not None:
        itself = " itself" if row["reason"] == "straggler" else ""
        rank = f"; rank {row['worst_rank']}{itself}: {row['worst_percent']:.1f} %"
    per_step = " per step" if row["steps"] else ""
    head = f"{row['title']}: {row['share_percent']:.1f} % ({row['step_ns'] / 1e6:.3f} ms{per_step}{rank})"
    lines = _wrapped(head, place)
    indent = " " * len(place)
    if row["detail"]:
        lines += _wrapped(row["detail"], f"{indent}Evidence: ")
    if row["event_ids"]:
        numbers = ", ".join(map(str, row["event_ids"]))
        lines += _wrapped(f"{numbers} of capture {row['capture_id']}; view {row['evidence']}", f"{indent}Events: ")
    if row["sql"]:
        lines.append(f"{indent}Query: {row['sql']}")
    if row["advice"]:
        lines += _wrapped(row["advice"], f"{indent}Try: ")
    return lines


def _setting(row: Row) -> str:
    labels = row["labels"] or {}
    return " ".join(f"{key}={value}" for key, value in sorted(dict(labels).items()))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


def _wrapped(text: str, begin: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin))
