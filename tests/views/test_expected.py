"""``v1.expected``: operators beside predicted times, and the verdicts on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]
Together = Callable[[Callable[[Insert], None], str], list[tuple[Any, ...]]]

B = "c10::BFloat16"
TYPES = json.dumps([B])
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TIME = 100_000
"""Predicted time of a call; the interval is ± 4 %."""


@pytest.fixture
def rows(insert: Insert) -> Callable[..., None]:
    """``rows(capture, name, ratios, beside=[…])``: calls of an operator that take so many times as long as predicted,
    alone and beside a collective."""
    insert("capture", "capture_id source rank", (1, "torch", 0), (2, "torch", 1))
    insert("device", "capture_id device_id name", (1, 0, "H100"), (2, 0, "H100"))
    return calls_of(insert)


def calls_of(insert: Insert) -> Callable[..., None]:
    number = iter(range(1, 10**6))

    def put(capture: int, name: str, ratios: list[float], beside: tuple[float, ...] = (), known: bool = True) -> None:
        if known:
            insert("expected_time", "capture_id name predicted_ns low_ns high_ns basis samples",
                   (capture, name, TIME, TIME / 1.04, TIME * 1.04, "recorded", 7),
                   gpu="H100", input_dims="[[8, 4]]", input_types=TYPES, math_dtype="bf16",
                   **{"pass": "fwd"})  # fmt: skip
        for ratio, is_beside in [*((ratio, False) for ratio in ratios), *((ratio, True) for ratio in beside)]:
            op, at = next(number), next(number) * 10_000_000
            insert("op", "op_id name", (op, name), capture_id=capture, process_id=1, thread_id=1,
                   start_ns=at, duration_ns=1, input_dims="[[8, 4]]", input_types=TYPES)  # fmt: skip
            insert("kernel_event", "event_id op_id start_ns duration_ns", (op, op, at, round(TIME * ratio)),
                   capture_id=capture, device_id=0, stream_id=7, kind="kernel", name="k")  # fmt: skip
            if is_beside:
                insert("kernel_event", "event_id start_ns duration_ns", (10**7 + op, at, TIME),
                       capture_id=capture, device_id=0, stream_id=9, kind="kernel", name=NCCL)  # fmt: skip

    return put


def test_no_predictions(rows: Callable[..., None], ask: Ask) -> None:
    """A capture that was never predicted has no rows; in one that was, other operators are unknown."""
    rows(1, "aten::gelu", [1.0], known=False)
    assert ask("SELECT * FROM v1.expected") == []
    rows(1, "aten::mul", [1.0])
    assert ask("SELECT name, predicted_ns, lost_ns, far_calls, verdict FROM v1.expected ORDER BY name") == [
        ("aten::gelu", None, None, None, "unknown"),
        ("aten::mul", TIME, 0, 0, "as expected"),
    ]


def test_sums_over_calls(rows: Callable[..., None], ask: Ask) -> None:
    rows(1, "aten::mul", [1.0, 1.5, 1.5])
    (row,) = ask(
        "SELECT capture_id, rank, device_id, name, input_dims, dtype, pass, calls, measured_ns, predicted_ns, low_ns, "
        "high_ns, lost_ns, verdict, ratio, alone_ratio, beside_calls, beside_ratio, basis, samples FROM v1.expected"
    )
    assert row[:10] == (1, 0, 0, "aten::mul", "[[8, 4]]", "bf16", "fwd", 3, 4 * TIME, 3 * TIME)
    assert row[10:13] == pytest.approx((3 * TIME / 1.04, 3 * TIME * 1.04, 2 * 0.46 * TIME), abs=1)
    assert row[13] == "slower"
    assert row[14:16] == pytest.approx((4 / 3, 1.5))
    assert row[16:] == (0, None, "recorded", 7)


VERDICTS: dict[str, tuple[list[float], tuple[float, ...], str]] = {
    "within the interval": ([1.0, 1.03, 0.97], (), "as expected"),
    "beyond it by less than 5 %": ([1.045, 1.045], (), "as expected"),
    "slower": ([1.3, 1.3, 1.3], (), "slower"),
    "faster": ([0.7, 0.7], (), "faster"),
    "one call far beyond": ([1.0] * 4 + [9.0], (), "as expected"),
    "two of many calls": ([1.0] * 8 + [2.0, 2.0], (), "slower at times"),
    "beside collectives": ([1.0, 1.0], (1.9, 1.9), "slower beside collectives"),
    "little beside collectives": ([1.0, 1.0], (1.12, 1.12), "as expected"),
    "only beside collectives": ([], (1.9, 1.9), "slower beside collectives"),
    "alone too": ([1.4, 1.4], (1.9, 1.9), "slower"),
}


@pytest.fixture(scope="module")
def verdicts(together: Together) -> dict[str, dict[str, str]]:
    """The verdict on each operator in each case, a capture of its own run."""

    def write(insert: Insert) -> None:
        rows = calls_of(insert)
        for capture, (case, (ratios, beside, _)) in enumerate(VERDICTS.items()):
            insert("capture", "capture_id source rank labels", (capture, "torch", 0, {"case": case}))
            insert("device", "capture_id device_id name", (capture, 0, "H100"))
            rows(capture, "aten::mul", ratios, beside)
            for other in range(9):
                rows(capture, f"other{other}", [1.0, 1.01, 0.99])

    found: dict[str, dict[str, str]] = {case: {} for case in VERDICTS}
    for case, name, verdict in together(write, "SELECT labels['case'], name, verdict FROM v1.expected"):
        assert name not in found[case]
        found[case][name] = verdict
    return found


@pytest.mark.parametrize("case", VERDICTS)
def test_verdicts(case: str, verdicts: dict[str, dict[str, str]]) -> None:
    """Of one operator among nine that take as long as predicted."""
    others = {f"other{other}": "as expected" for other in range(9)}
    assert verdicts[case] == {"aten::mul": VERDICTS[case][-1], **others}


def test_a_gpu_that_is_shared(rows: Callable[..., None], ask: Ask) -> None:
    """Another process stops a kernel here and there: one call of three operators of rank 1, 2 calls long."""
    for other in range(6):
        rows(1, f"other{other}", [1.0] * 4)
        rows(2, f"other{other}", [1.0] * 3 + [3.0 if other < 3 else 1.0])
    columns = "rank, verdict, count(*), min(device_far_percent), min(device_ratio)"
    assert ask(f"SELECT {columns} FROM v1.expected GROUP BY rank, verdict ORDER BY ALL") == [
        (0, "as expected", 6, 0, 1),
        (1, "as expected", 3, pytest.approx(100 * 3 * 1.96 / 24), 1),
        (1, "slower at times", 3, pytest.approx(100 * 3 * 1.96 / 24), 1),
    ]


def test_the_more_rows_the_more_evidence(rows: Callable[..., None], ask: Ask) -> None:
    """1.06 is named among one row, not among ten: one of ten honest rows may well lie so far off."""
    query = "SELECT verdict, limit_ratio FROM v1.expected WHERE name = 'aten::mul'"
    rows(1, "aten::mul", [1.06, 1.06])
    assert ask(query) == [("slower", pytest.approx(1.05))]
    for other in range(9):
        rows(1, f"other{other}", [1.0])
    assert ask(query) == [("as expected", pytest.approx(1.04**2))]


def test_a_slow_gpu(rows: Callable[..., None], ask: Ask) -> None:
    """7 % is not enough for a single row of ten, but all of them are not chance."""
    for other in range(5):
        rows(1, f"other{other}", [1.0, 1.01])
        rows(2, f"other{other}", [1.07, 1.07])
    query = "SELECT rank, count(*), min(device_slow_percent) FROM v1.expected WHERE verdict = 'slower' GROUP BY rank"
    assert ask(query) == [(1, 5, 100)]


def test_how_slow_a_gpu_is_needs_calls_alone(rows: Callable[..., None], ask: Ask) -> None:
    """Calls beside collectives do not tell; 0 % is that of a GPU whose calls alone are within their intervals."""
    rows(1, "aten::mul", [], (1.9, 1.9))
    rows(2, "aten::mul", [1.0])
    assert ask("SELECT rank, device_slow_percent FROM v1.expected ORDER BY rank") == [(0, None), (1, 0)]


def test_little_lost_time_is_not_named(rows: Callable[..., None], ask: Ask) -> None:
    rows(1, "aten::mul", [1.3])
    rows(1, "long", [1.0] * 300)
    assert ask("SELECT name, verdict FROM v1.expected ORDER BY name") == [
        ("aten::mul", "as expected"),
        ("long", "as expected"),
    ]


def test_by_rank_and_step(rows: Callable[..., None], report: Report) -> None:
    """A condition on events takes one capture; --by replaces capture and device."""
    rows(1, "aten::mul", [1.0])
    rows(2, "aten::mul", [2.0])
    found = report("expected", '"rank", calls, measured_ns, predicted_ns, verdict', by={"rank": "{base}.rank"})
    assert found == [(0, 1, TIME, TIME, "as expected"), (1, 1, 2 * TIME, TIME, "slower")]
    assert report("expected", "capture_id, calls", where={"e": "e.rank = 1"}) == [(2, 1)]
