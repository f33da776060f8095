"""Convert values of an unexpected type where the conversion is exact."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

from tracedb_torch.int_columns import UNUSABLE
from tracedb_torch.recover.repair import clean

INT_LIMIT = 1 << 64
TEXT_FIELDS = frozenset(
    (
        *("Input Dims", "Input dims", "Input type", "Input Strides", "Concrete Inputs", "Collective name"),
        *("In msg nelems", "Out msg nelems", "In split size", "Out split size", "Src Rank", "Dst Rank", "Rank"),
        *("Group size", "dtype", "Process Group Name", "Process Group Ranks", "Seq"),
    )
)
HALF = re.compile("[\ud800-\udfff]")
SIZE_FIELDS = frozenset(("grid", "block"))
PLACES = frozenset(("device", "stream"))
INT_FIELDS = frozenset(
    (
        *("External id", "external id", "device", "context", "stream", "correlation", "registers per thread"),
        *("shared memory", "bytes", "graph id", "graph node id", "Sequence number", "Fwd thread id"),
        *("Total Reserved", "Total Allocated", "Bytes", "Device Id", "Device Type", "Addr"),
    )
)


def coerced(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the event with each known field in its expected type, and the names of fields that were lost."""
    lost: list[str] = []
    event: dict[str, Any] = {}
    for key in ("ph", "cat", "name"):
        if value.get(key) is not None:
            event[key] = clean(value[key] if isinstance(value[key], str) else json.dumps(value[key], default=float))
    for key in ("pid", "tid"):
        number = _integer(value.get(key))
        if number is not None and not isinstance(value[key], str):
            event[key] = number
        elif isinstance(value.get(key), str):
            event[key] = clean(value[key])
        elif value.get(key) is not None:
            lost.append(key)
    for key in ("ts", "dur"):
        if value.get(key) is not None:
            event[key] = time_of(value[key])
    args = value.get("args")
    if isinstance(args, dict):
        event["args"] = _coerce_args(args, lost)
    return event, lost


def _coerce_args(args: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in args.items():
        if value is None:
            continue
        found: Any
        if key in INT_FIELDS:
            found = _integer(value)
        elif key in SIZE_FIELDS:
            found = _size(value)
        elif key == "est. achieved occupancy %":
            found = _finite(value)
        elif key in TEXT_FIELDS:
            found = whole(value)
        else:
            continue
        if found is not None:
            out[key] = found
        elif key in PLACES:
            out[key] = UNUSABLE  # counted when columns are built
        else:
            lost.append(key)
    return out


def whole(value: Any) -> Any:
    """Return a JSON value without halves of surrogate pairs in its texts: no encoder takes them."""
    if isinstance(value, str):
        return HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    return value


def _integer(value: Any) -> int | None:
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and re.fullmatch(r"-?\d{1,20}", value.strip()):
        number = int(value)
    elif isinstance(value, float | Decimal) and math.isfinite(value) and -INT_LIMIT < value < INT_LIMIT:
        number = int(value) if value == int(value) else None
    return number if number is not None and -INT_LIMIT < number < INT_LIMIT else None


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _size(value: Any) -> list[int] | str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and 1 <= len(value) <= 3:
        sizes = [_integer(item) for item in value] + [1, 1]
        if all(size is not None for size in sizes):
            return [size for size in sizes[:3] if size is not None]
    return None


def time_of(value: Any) -> str | None:
    """Return a time as decimal text, exact at any size; NaN if it is not a time, None for null."""
    if value is None:
        return None
    try:
        number = Decimal("NaN" if isinstance(value, bool) else str(value).strip())
    except (ArithmeticError, RecursionError, ValueError):
        return "NaN"
    return str(number) if number.is_finite() else "NaN"
