"""Hardware counters in the arguments of events of CUPTI's range profiler: one each, with its name as key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Raw

from tracedb.ingester.issues import Account


def counters(
    events: Sequence[int], args: Sequence[Mapping[str, Raw]], account: Account
) -> tuple[list[int], list[str], list[float]]:
    """Return event, name and value of each counter; values that are no numbers are counted in the account."""
    numbers, names, values = list[int](), list[str](), list[float]()
    for event, metrics in zip(events, args, strict=True):
        for name, text in metrics.items():
            value = _number(bytes(text))
            if value is None:
                account.unreadable(name)
                continue
            numbers.append(event)
            names.append(name)
            values.append(value)
    return numbers, names, values


def _number(text: bytes) -> float | None:
    try:
        value = float(text.strip(b'" '))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
