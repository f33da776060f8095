"""Comparisons that are computed once: commands that compare the same sides read the same tables.

A comparison takes half a second whatever it is asked, and several tests ask one for different gates, kinds and widths.
Everything else of a command runs each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import duckdb
import pytest

from tracedb import compare

Compared = Callable[..., AbstractContextManager[duckdb.DuckDBPyConnection]]


@contextmanager
def kept() -> Iterator[None]:
    """Have the commands inside compute each comparison once; databases that are compared must not be written."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "compared", _once(compare.compared, stack))
        yield


def _once(compared: Compared, stack: ExitStack) -> Compared:
    """Return ``compared`` with a memory; what raises is computed again."""
    found: dict[tuple[Any, ...], duckdb.DuckDBPyConnection] = {}

    def asked(
        sides: Sequence[compare.Side], baseline: int, steps: compare.Steps
    ) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        key = (*sides, baseline, steps)
        if key not in found:
            found[key] = stack.enter_context(compared(sides, baseline, steps))
        return nullcontext(found[key])

    return asked
