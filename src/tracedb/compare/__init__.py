"""Compare runs with a baseline, and gates on what grew."""

from tracedb.compare.comparison import (
    Side,
    Steps,
    about,
    answer,
    capture_sides,
    chosen,
    compared,
    gist,
    judged,
    kinds_for_eyes,
    remarks,
    select,
    side,
    tested,
    unit,
    warnings,
)
from tracedb.compare.gates import KINDS, Gate, Verdict, gate

__all__ = [
    "KINDS",
    "Gate",
    "Side",
    "Steps",
    "Verdict",
    "about",
    "answer",
    "capture_sides",
    "chosen",
    "compared",
    "gate",
    "gist",
    "judged",
    "kinds_for_eyes",
    "remarks",
    "select",
    "side",
    "tested",
    "unit",
    "warnings",
]
