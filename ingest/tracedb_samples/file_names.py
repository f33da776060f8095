"""What the name and the header of a sampling file say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import ReadError

NAME = re.compile(r"(?P<gpu>[^_]+)_(?P<operator>.+)_(?P<dtype>fp16|bf16|fp32|fp64)(?P<piece>_\d+_\d+)?\.csv", re.ASCII)
PASSES = {"F_dur(us)": "fwd", "B_dur(us)": "bwd", "dur(us)": "", "dur": ""}
"""Column of a time → its pass; empty where a file has one time a row, whose pass the shape tells."""
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RENAMED = {"shape": "elements", "GPUsPerNode": "gpus_per_node"}
"""NCCL files call the number of elements the shape."""


@dataclass(frozen=True)
class Header:
    """The columns of a file: parameters of the shape as the file and as tracedb calls them, and times by pass."""

    columns: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sweep:
    """What a file's name says. ``piece``: a part of the sweep, or nodes and GPUs of a collective."""

    gpu: str
    operator: str
    dtype: str
    piece: str


def header_of(line: str) -> Header | None:
    """Return the columns of a sampling file, or None where the line is no such header."""
    columns = tuple(line.strip().split(","))
    times = [name for name in columns if name in PASSES]
    parameters = columns[: len(columns) - len(times)]
    if not times or not parameters or list(columns[len(parameters) :]) != times or len(set(columns)) < len(columns):
        return None
    if not all(_WORD.fullmatch(name) for name in parameters) or times not in (
        ["F_dur(us)", "B_dur(us)"],
        ["dur(us)"],
        ["dur"],
    ):
        return None
    whole = "comm" if columns[0] == "shape" else "step"
    return Header(
        columns,
        tuple((name, _RENAMED.get(name, name)) for name in parameters),
        tuple((name, PASSES[name] or whole) for name in times),
    )


def sweep_of(path: Path) -> Sweep:
    """Return what a file's name says. Raises ``ReadError`` for a name of another form."""
    match = NAME.fullmatch(path.name)
    if match is None:
        raise ReadError(
            f"its name does not say GPU, operator and element type; name it GPU_OPERATOR_fp16.csv, with _PARTS_PART "
            f"or _NODES_GPUS before the dot where it is a piece, not {path.name!r}"
        )
    return Sweep(match["gpu"], match["operator"], match["dtype"], match["piece"] or "")
