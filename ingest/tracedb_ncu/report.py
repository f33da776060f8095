"""Records of a report of Nsight Compute (``.ncu-rep``), read with NVIDIA's package ``ncu-report`` if it is installed.

The package is not needed otherwise, and is imported only here. It reads the file in compiled code of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracedb_ncu.csv_records import IDENTITY, Metric, Record, scale

PACKAGE = "ncu_report"
GRID = ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z")
BLOCK = ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z")
CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")


def is_readable() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def records(path: Path) -> Iterator[Record]:
    """Yield a record for each result, numbered from 0. A file that is no report has none."""
    context = importlib.import_module(PACKAGE).load_report(str(path))
    number = 0
    for place in range(context.num_ranges()):
        found = context.range_by_idx(place)
        for result in range(found.num_actions()):
            yield _record(number, found.action_by_idx(result))
            number += 1


def _record(number: int, action: Any) -> Record:
    metrics = [_metric(action.metric_by_name(name), name) for name in action.metric_names()]
    values = {metric.name: metric.value for metric in metrics}
    identity = dict.fromkeys(IDENTITY, "") | {
        "ID": str(number),
        "Kernel Name": str(action.name(action.NameBase_DEMANGLED)),
        "Grid Size": _sizes(values, GRID),
        "Block Size": _sizes(values, BLOCK),
        "Context": _whole(values.get("launch__context_id")),
        "Stream": _whole(values.get("launch__stream_id")),
        "Device": _whole(values.get("launch__device_id")),
        "CC": ".".join(_whole(values.get(name)) for name in CAPABILITY).strip("."),
    }
    return Record(number, identity, metrics)


def _metric(metric: Any, name: str) -> Metric:
    """Return a metric in its base unit; texts have no value."""
    is_number = metric.has_value() and metric.kind() not in (metric.ValueKind_STRING, metric.ValueKind_UNKNOWN)
    return Metric(name, metric.as_double() * scale(metric.unit()) if is_number else None, "")


def _sizes(values: dict[str, float | None], names: tuple[str, ...]) -> str:
    return ", ".join(_whole(values.get(name)) for name in names)


def _whole(value: float | None) -> str:
    return "" if value is None or value < 0 else str(int(value))
