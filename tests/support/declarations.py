"""What the comment of a public column must declare."""

from __future__ import annotations

import re

from tracedb.output import units

IN_BRACKETS = re.compile(r"\((ns|us|MB|%)\)$")
OF_PEERS = {"us": "µs", "%": "percent"}


def fault(name: str, type_name: str, comment: str | None) -> str | None:
    """Return what is wrong with a column's comment: it is a sentence, then its unit in brackets if it is a number."""
    text, unit = units.declared(comment or "")
    if not re.fullmatch(r"\S.*[.…](?: \[\S+\])?", text, re.DOTALL):
        return f"its comment is no sentence: {comment!r}"
    if unit is None:
        is_number = re.search(r"INT\b|DOUBLE|FLOAT|DECIMAL", type_name.removeprefix("MAP(INTEGER, "))
        return f"is a number and declares no unit: {comment!r}" if is_number else None
    in_name = IN_BRACKETS.search(name)
    wanted = OF_PEERS.get(in_name[1], in_name[1]) if in_name else units.by_name(name)
    return f"is named as {wanted} and declares {unit}" if wanted not in (None, unit) else None
