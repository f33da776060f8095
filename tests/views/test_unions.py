"""The interval unions of ``collective_overlap`` and ``gpu_timeline`` against plain sets of nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import MORE

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]

COMPUTE, COLLECTIVE, COPY = (
    "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNT",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "Memset",
)
EVENTS = st.lists(
    st.tuples(st.sampled_from((COMPUTE, COLLECTIVE, COPY)), st.integers(-60, 60), st.integers(0, 25)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=20 * MORE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_unions_are_those_of_sets(
    db: duckdb.DuckDBPyConnection, insert: Insert, ask: Ask, events: list[tuple[str, int, int]]
) -> None:
    db.execute("DELETE FROM main.kernel_event")
    rows = [(number, "memset" if event[0] == COPY else "kernel", *event) for number, event in enumerate(events)]
    insert("kernel_event", "event_id kind name start_ns duration_ns", *rows, capture_id=0, device_id=0)
    covered: dict[str, set[int]] = {COMPUTE: set(), COLLECTIVE: set(), COPY: set()}
    for name, start, duration in events:
        covered[name].update(range(start, start + duration))
    compute, collective, copy = covered.values()
    total = max(start + duration for _, start, duration in events) - min(start for _, start, _ in events)
    busy = len(compute | collective | copy)
    parts = (len(compute), len(collective - compute), len(copy - compute - collective))
    columns = "computation_ns, exposed_collective_ns, exposed_copy_ns, busy_ns, idle_ns, total_ns"
    assert ask(f"SELECT {columns} FROM v1.gpu_timeline") == [(*parts, busy, total - busy, total)]
    if any(name != COPY for name, _, _ in events):
        columns = "collective_ns, compute_ns, overlapped_ns, exposed_collective_ns"
        expected = (len(collective), len(compute), len(compute & collective), len(collective - compute))
        assert ask(f"SELECT {columns} FROM v1.collective_overlap") == [expected]
