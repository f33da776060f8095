"""Parse the name and the header of a sampling file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import ReadError

NAME = re.compile(r"(?P<gpu>[^_]+)_(?P<operator>.+)_(?P<dtype>fp16|bf16|fp32|fp64)(?P<piece>_\d+_\d+)?\.csv", re.ASCII)
PASSES = {"F_dur(us)": "fwd", "B_dur(us)": "bwd", "dur(us)": "", "dur": ""}
"""Time column → its pass; empty if a file has one time per row, where the shape determines the pass."""
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RENAMED = {"shape": "elements", "GPUsPerNode": "gpus_per_node"}
"""NCCL files call the number of elements "shape"."""


@dataclass(frozen=True)
class Header:
    """The columns of a file: shape parameters under the file's and tracedb's names, and times by pass."""

    columns: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sweep:
    """The parts of a file's name. ``piece``: a part of the sweep, or a collective's nodes and GPUs."""

    gpu: str
    operator: str
    dtype: str
    piece: str


def header_of(line: str) -> Header | None:
    """Return the columns of a sampling file, or None if the line is not its header."""
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
    """Parse a file's name. Raises ``ReadError`` if it has another form."""
    match = NAME.fullmatch(path.name)
    if match is None:
        raise ReadError(
            f"the name must give GPU, operator and element type; name it GPU_OPERATOR_fp16.csv, with _PARTS_PART or "
            f"_NODES_GPUS before the dot for a piece, not {path.name!r}"
        )
    return Sweep(match["gpu"], match["operator"], match["dtype"], match["piece"] or "")
