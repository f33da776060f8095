"""``v1.overlap_effect``: overlapped calls against calls alone, by mean, median and rank."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]
Report = Callable[..., list[tuple[Any, ...]]]

TESTED = "overlapped_calls, alone_calls, overlapped_median_ns, alone_median_ns, slowdown, slower_pairs_percent, p_value"


def calls(insert: Insert, beside: Sequence[int], alone: Sequence[int], capture: int = 0) -> None:
    """Put in one GEMM's calls; each of those beside a collective has one of its own."""
    rows: list[tuple[int, str, int, int]] = []
    for number, duration in enumerate([*beside, *alone]):
        rows.append((number, "sgemm", number * 10_000, duration))
        if number < len(beside):
            rows.append((1_000 + number, "ncclKernel", number * 10_000 - 5, duration + 10))
    insert("kernel_event", "event_id name start_ns duration_ns", *rows, capture_id=capture, device_id=0, kind="kernel")


def mann_whitney(beside: Sequence[int], alone: Sequence[int]) -> tuple[float, float]:
    """Return U and its two-sided p-value by comparing all pairs."""
    u = sum((a > b) + (a == b) / 2 for a in beside for b in alone)
    pooled = [*beside, *alone]
    n = len(pooled)
    ties = sum(pooled.count(value) ** 3 - pooled.count(value) for value in set(pooled))
    pairs = len(beside) * len(alone)
    deviation = math.sqrt(pairs / 12 * (n + 1 - ties / (n * (n - 1))))
    z = max(abs(u - pairs / 2) - 0.5, 0) / deviation if deviation else 0.0
    return u, min(1.0, math.erfc(z / math.sqrt(2)))


def test_empty(insert: Insert, ask: Ask) -> None:
    assert ask("SELECT * FROM v1.overlap_effect") == []


DICE = random.Random(3)
FAR = ([DICE.randrange(2_000, 3_000) for _ in range(60)], [DICE.randrange(1_000, 2_000) for _ in range(50)])
NEAR = ([DICE.randrange(1_000, 1_600) for _ in range(40)], [DICE.randrange(1_000, 1_500) for _ in range(30)])
TIED = ([DICE.randrange(10, 14) for _ in range(25)], [DICE.randrange(10, 13) for _ in range(9)])


@pytest.mark.parametrize(
    ("beside", "alone"),
    [FAR, NEAR, TIED, (range(8), range(8, 16)), ([7] * 8, [7] * 9), ([5, 6] * 4, [5, 6] * 4), ([9] * 9, [1] * 8)],
)
def test_against_all_pairs(
    insert: Insert, ask: Ask, shuffled: Callable[[], None], beside: Sequence[int], alone: Sequence[int]
) -> None:
    calls(insert, beside, alone)
    u, p = mann_whitney(beside, alone)
    right = [(
        len(beside), len(alone), sorted(beside)[len(beside) // 2] / 2 + sorted(beside)[(len(beside) - 1) // 2] / 2,
        sorted(alone)[len(alone) // 2] / 2 + sorted(alone)[(len(alone) - 1) // 2] / 2,
        pytest.approx(sum(beside) / len(beside) / (sum(alone) / len(alone)), rel=1e-12),
        pytest.approx(100 * u / len(beside) / len(alone), rel=1e-12), pytest.approx(p, rel=2e-7),
    )]  # fmt: skip
    query = f"SELECT {TESTED}, o FROM v1.overlap_effect AS o"
    found = ask(query)
    assert [row[:-1] for row in found] == right
    shuffled()
    assert ask(query) == found


@pytest.mark.parametrize(("beside", "alone"), [(7, 20), (20, 7), (0, 20), (20, 0)])
def test_no_p_value_below_eight_calls_a_side(insert: Insert, ask: Ask, beside: int, alone: int) -> None:
    calls(insert, range(100, 100 + beside), range(alone))
    ((found, slowdown),) = ask("SELECT p_value, slowdown FROM v1.overlap_effect")
    assert found is None
    assert (slowdown is None) == (beside == 0 or alone == 0)


def test_calls_of_no_length_give_no_ratio(insert: Insert, ask: Ask) -> None:
    insert("kernel_event", "event_id name start_ns duration_ns", (1, "sgemm", 5, 0), (2, "ncclKernel", 0, 9),
           (3, "sgemm", 20, 0), capture_id=0, kind="kernel", device_id=0)  # fmt: skip
    assert ask("SELECT slowdown, median_slowdown, slower_pairs_percent FROM v1.overlap_effect") == [(None, None, 50.0)]


def test_by_configuration(insert: Insert, ask: Ask, report: Report) -> None:
    insert("capture", "capture_id labels", (0, {"c": "4"}), (1, {"c": "8"}), source="torch")
    calls(insert, [12] * 8, [10] * 8, capture=0)
    calls(insert, [20] * 8, [10] * 8, capture=1)
    assert report("overlap_effect", "c, calls, slowdown, p_value < 0.01", by={"c": "{base}.labels['c']"}) == [
        ("4", 16, 1.2, True),
        ("8", 16, 2.0, True),
    ]
    assert report("overlap_effect", "calls, slowdown") == [(32, 1.6)]
    assert report("overlap_effect", "calls, slowdown", where={"e": "e.capture_id = 1"}) == [(16, 2.0)]
