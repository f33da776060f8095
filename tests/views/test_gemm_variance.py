"""``v1.gemm_variance``: how much one GEMM varies, and whether overlapping collectives explain it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

EVENT = "event_id name start_ns duration_ns"
WORDS = "SELECT overlapped_calls, alone_calls, verdict FROM v1.gemm_variance ORDER BY capture_id, device_id"


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask("SELECT * FROM v1.gemm_variance") == []
    insert("kernel_event", EVENT, (1, "add", 0, 5), capture_id=0, kind="kernel")
    assert ask("SELECT * FROM v1.gemm_variance") == []


def test_statistics_per_capture_name_and_shapes(insert: Insert, ask: Ask, shuffled: Callable[[], None]) -> None:
    insert("capture", "capture_id rank labels", (0, 2, {"t": "1"}), (1, None, {}), source="torch")
    insert("op", "capture_id op_id input_dims", (0, 1, "[[4, 4]]"), (0, 2, "[[8, 8]]"), (1, 1, "[[9, 9]]"),
           name="aten::mm", start_ns=0, duration_ns=1)  # fmt: skip
    insert("kernel_event", "capture_id event_id op_id start_ns duration_ns",
           (0, 1, 1, 50, 10), (0, 2, 1, 10, 30), (0, 3, 1, -90, 10), (0, 4, 1, 90, 30), (0, 5, 2, 0, 7),
           (0, 6, None, 0, 7), (1, 1, 1, 0, 4), (1, 2, 1, 5, 4),
           kind="kernel", name="sgemm", device_id=0)  # fmt: skip
    query = """SELECT capture_id, rank, labels['t'], name, input_dims, calls, total_ns, mean_ns, stddev_ns, cv_percent,
                      min_ns, max_ns, spread_ns, excess_ns, p50_ns, p95_ns, start_of_min_ns, start_of_max_ns, verdict
               FROM v1.gemm_variance ORDER BY capture_id, input_dims NULLS LAST"""
    deviation = pytest.approx((400 / 3) ** 0.5)
    right = [
        (0, 2, "1", "sgemm", "[[4, 4]]", 4, 80, 20.0, deviation, pytest.approx(57.735026918962575), 10, 30, 20,
         40, 20.0, 30.0, -90, 10, "no collectives"),
        (0, 2, "1", "sgemm", "[[8, 8]]", 1, 7, 7.0, 0.0, 0.0, 7, 7, 0, 0, 7.0, 7.0, 0, 0, "no collectives"),
        (0, 2, "1", "sgemm", None, 1, 7, 7.0, 0.0, 0.0, 7, 7, 0, 0, 7.0, 7.0, 0, 0, "no collectives"),
        (1, None, None, "sgemm", "[[9, 9]]", 2, 8, 4.0, 0.0, 0.0, 4, 4, 0, 0, 4.0, 4.0, 0, 0, "no collectives"),
    ]  # fmt: skip
    assert ask(query) == right
    shuffled()
    assert ask(query) == right


def test_overlap_is_strict_and_of_one_device(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id name start_ns duration_ns device_id",
           (1, "ncclKernel", 100, 50, 0), (2, "ncclKernel", 110, 5, 0), (3, "ncclKernel", 150, 10, 0),
           (4, "ncclKernel", 300, 0, 0), (5, "ncclKernel", 0, 900, 1),
           (10, "sgemm", 90, 10, 0), (11, "sgemm", 160, 10, 0), (12, "sgemm", 150, 0, 0), (13, "sgemm", 300, 9, 0),
           (14, "sgemm", 100, 10, None),                                                       # all these alone
           (20, "sgemm", 99, 2, 0), (21, "sgemm", 120, 1, 0), (22, "sgemm", 159, 10, 0), (23, "sgemm", 299, 2, 0),
           (24, "sgemm", 120, 0, 0), (25, "sgemm", 0, 1, 1),                                    # all these beside one
           capture_id=0, kind="kernel")  # fmt: skip
    assert ask(WORDS) == [(5, 4, "spread has other causes"), (1, 0, "always overlapped"), (0, 1, "never overlapped")]


def test_unknown_devices_are_one_device(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", EVENT, (1, "ncclKernel", 0, 50), (2, "sgemm", 10, 5), capture_id=0, kind="kernel")
    assert ask(WORDS) == [(1, 0, "always overlapped")]


@pytest.mark.parametrize(
    ("beside", "alone", "verdict", "slowdown", "explained"),
    [
        ((20, 20, 20), (10, 10, 10), "slower beside collectives", 2.0, 100.0),
        ((10, 10, 10), (20, 20, 20), "faster beside collectives", 0.5, 100.0),
        ((20, 20), (10, 10, 10), "too few calls", 2.0, 100.0),
        ((10, 30, 11), (10, 30, 11), "spread has other causes", 1.0, 0.0),
        ((7, 7, 7), (7, 7, 7), "spread has other causes", 1.0, None),
        ((20, 20), (), "always overlapped", None, None),
        ((), (20, 20), "never overlapped", None, None),
        ((0, 0, 0), (0, 0, 0), "spread has other causes", None, None),
    ],
)
def test_verdict(
    insert: Insert, ask: Ask, beside: Any, alone: Any, verdict: str, slowdown: float, explained: float
) -> None:
    insert("kernel_event", EVENT, (0, "ncclKernel", 0, 1000),
           *[(1 + i, "sgemm", 100 + i, ns) for i, ns in enumerate(beside)],
           *[(9 + i, "sgemm", 2000 + i, ns) for i, ns in enumerate(alone)], capture_id=0, kind="kernel")  # fmt: skip
    found = ask("SELECT verdict, slowdown, spread_explained_percent FROM v1.gemm_variance")
    assert found == [(verdict, slowdown, explained)]


def test_by_takes_the_place_of_the_capture(insert: Insert, report: Report) -> None:
    insert("capture", "capture_id rank", (0, 0), (1, 1), (2, 1), source="torch", labels={"t": "8"})
    insert("kernel_event", "capture_id duration_ns", (0, 10), (1, 20), (2, 40),
           event_id=1, kind="kernel", name="sgemm", start_ns=0)  # fmt: skip
    by = {"t": "{base}.labels['t']"}
    assert report("gemm_variance", '* EXCLUDE (input_dims, batch, m, n, k), "t"', by=by)[0][:4] == ("8", "sgemm", 3, 70)
    by = {"rank": "{base}.rank"}
    assert report("gemm_variance", '"rank", calls, mean_ns', by=by) == [(0, 1, 10.0), (1, 2, 30.0)]
    found = report("gemm_variance", "capture_id, rank, calls", where={"e": "e.rank = 1"})
    assert found == [(1, 1, 1), (2, 1, 1)]


def test_collectives_of_an_unknown_device(insert: Insert, ask: Ask) -> None:
    """Events of unknown devices are compared with each other."""
    insert("capture", "capture_id rank", (0, 0), source="torch")
    insert("kernel_event", "event_id name start_ns duration_ns",
           (1, "ncclKernel", 0, 50), (2, "sgemm", 10, 5), (3, "sgemm", 90, 5),
           capture_id=0, device_id=None, kind="kernel")  # fmt: skip
    assert ask("SELECT device_id, calls, overlapped_calls FROM v1.gemm_variance") == [(None, 2, 1)]
