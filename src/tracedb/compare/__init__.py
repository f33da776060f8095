"""Compare runs with a baseline, and gates on what grew."""

from tracedb.compare.comparison import (
    Side,
    Steps,
    answer,
    capture_sides,
    compared,
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
    "answer",
    "capture_sides",
    "compared",
    "gate",
    "judged",
    "kinds_for_eyes",
    "remarks",
    "select",
    "side",
    "tested",
    "unit",
    "warnings",
]
