"""``v1.gemm_spread`` and related views: GEMM spreads by setting, and whether settings differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

Insert = Callable[..., None]
Ask = Callable[[str], list[tuple[Any, ...]]]

GEMM = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNT"


def runs(insert: Insert, spreads: Mapping[str, list[int]], rank: int | None = None) -> None:
    """Put in a run of one capture for each spread: a GEMM called twice, one call longer by the spread."""
    number = 0
    for threads, values in spreads.items():
        for value in values:
            number += 1
            insert(
                "capture",
                "capture_id rank",
                (number, rank),
                path=f"{number}.json",
                source="torch",
                status="complete",
                labels={"threads": threads, "run": str(number)},
            )
            insert(
                "kernel_event",
                "event_id start_ns duration_ns",
                (1, 0, 1_000),
                (2, 500_000, 1_000 + value),
                capture_id=number,
                kind="kernel",
                name=GEMM,
                device_id=0,
                stream_id=7,
            )


def statistic(groups: list[list[float]]) -> float:
    """Return Kruskal and Wallis's H, corrected for ties, in the way of a textbook."""
    values = sorted(value for group in groups for value in group)
    places = {
        value: sum(at + 1 for at, other in enumerate(values) if other == value) / values.count(value)
        for value in values
    }
    count = len(values)
    h = 12 / (count * (count + 1)) * sum(sum(places[value] for value in group) ** 2 / len(group) for group in groups)
    ties = sum(values.count(value) ** 3 - values.count(value) for value in set(values))
    return (h - 3 * (count + 1)) / (1 - ties / (count**3 - count))


TAILS: dict[int, Callable[[float], float]] = {
    2: lambda h: math.erfc(math.sqrt(h / 2)),
    3: lambda h: math.exp(-h / 2),
    4: lambda h: math.erfc(math.sqrt(h / 2)) + math.sqrt(2 * h / math.pi) * math.exp(-h / 2),
    5: lambda h: math.exp(-h / 2) * (1 + h / 2),
    6: lambda h: TAILS[4](h) + math.exp(-h / 2) * (h / 2) ** 1.5 / math.gamma(2.5),
}
"""Upper tail of chi-squared by the number of groups, for one degree of freedom less."""


@pytest.mark.parametrize(
    "groups",
    [
        [[100, 200, 300], [400, 500, 600]],
        [[100, 200, 300, 300], [300, 500, 600], [50, 60, 700]],
        [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]],
        [[5, 5, 9], [5, 6, 7], [5, 5, 5], [8, 8, 8], [1, 9, 9]],
        [[1, 20, 3], [4, 15, 6], [7, 8, 9], [10, 11, 12], [2, 5, 30], [6, 6, 6]],
    ],
)
def test_p_value_is_that_of_kruskal_and_wallis(insert: Insert, ask: Ask, groups: list[list[int]]) -> None:
    runs(insert, {str(2**at): group for at, group in enumerate(groups)})
    ((p_value, trials, fewest),) = ask(
        "SELECT DISTINCT p_value, trials, fewest_trials FROM v1.gemm_spread WHERE factor = 'threads'"
    )
    assert p_value == pytest.approx(
        TAILS[len(groups)](statistic([list(map(float, group)) for group in groups])), rel=2e-7
    )
    assert (trials, fewest) == (sum(map(len, groups)), min(map(len, groups)))


def test_equal_spreads_give_no_difference_and_few_runs_no_p_value(insert: Insert, ask: Ask) -> None:
    runs(insert, {"1": [7, 7, 7], "2": [7, 7, 7]})
    assert ask("SELECT DISTINCT p_value FROM v1.gemm_spread WHERE factor = 'threads'") == [(1.0,)]
    assert ask("SELECT count(*), count(p_value) FROM v1.gemm_spread WHERE factor = 'run'") == [(6, 0)]


def test_boxes_are_tukeys_and_levels_in_the_order_of_numbers(insert: Insert, ask: Ask) -> None:
    runs(insert, {"256": [10, 20, 30, 40, 1_000], "64": [1]}, rank=0)
    assert ask(
        """SELECT level, level_place, gemms, runs, min_ns, low_ns, p25_ns, median_ns, p75_ns,
                  high_ns, max_ns, mean_ns, outliers
           FROM v1.gemm_spread WHERE factor = 'threads' ORDER BY level_place"""
    ) == [
        ("64", 1, 1, 1, 1, 1, 1.0, 1.0, 1.0, 1, 1, 1.0, []),
        ("256", 2, 5, 5, 10, 10, 20.0, 30.0, 40.0, 40, 1_000, 220.0, [1_000]),
    ]
    # the rank is the same in all captures, and so no factor
    assert ask("SELECT DISTINCT factor FROM v1.gemm_spread ORDER BY factor") == [("run",), ("threads",)]


def test_gemms_called_once_have_no_spread(insert: Insert, ask: Ask) -> None:
    for number in (1, 2):
        insert("capture", "capture_id rank", (number, number), path="a", source="torch", status="complete", labels={})
        insert(
            "kernel_event",
            "event_id",
            (1,),
            capture_id=number,
            kind="kernel",
            name=GEMM,
            device_id=0,
            start_ns=0,
            duration_ns=5,
        )
    assert ask("SELECT * FROM v1.gemm_spread") == []


def test_density_integrates_to_one_and_is_widest_where_the_spreads_are(insert: Insert, ask: Ask) -> None:
    """Thirty spreads about 55 µs and one of 1 µs and 3 ms each: what the kernel spreads beyond the ends is little."""
    runs(insert, {"1": [1_000, *range(40_000, 70_000, 1_000), 3_000_000], "2": [100, 120, 500_000]})
    ((total, peak),) = ask(
        """SELECT sum(density) * ln((1 + 3000.0) / (1 + 1)) / 79, arg_max(spread_ns, density)
           FROM v1.gemm_spread_density WHERE factor = 'threads' AND level = '1'"""
    )
    assert total == pytest.approx(0.97, abs=0.03)
    assert 45_000 < peak < 65_000
    assert ask("SELECT max(relative_density) FROM v1.gemm_spread_density WHERE factor = 'threads'") == [(1.0,)]


def test_density_ends_where_the_spreads_of_its_level_end(insert: Insert, ask: Ask) -> None:
    """The largest spread of the factor is no part of other levels, and a single value is no wide shape."""
    runs(insert, {"1": [50_000, 55_000, 60_000], "2": [100, 120, 500_000], "3": [70_000]})
    found = ask(
        """SELECT level, count(*), min(spread_ns), max(spread_ns) FROM v1.gemm_spread_density
           WHERE factor = 'threads' GROUP BY level ORDER BY level"""
    )
    assert found[:2] == [("1", 80, 50_000, 60_000), ("2", 80, 100, 500_000)]
    ((level, points, least, most),) = found[2:]
    assert (level, points) == ("3", 80) and 69_000 < least < 70_000 < most < 71_000


def test_pairs_hold_the_mean_of_each_cell(insert: Insert, ask: Ask) -> None:
    cells = [("1", "4", 10), ("1", "8", 20), ("2", "4", 30), ("2", "8", 100), ("2", "8", 200)]
    for number, (threads, channels, spread) in enumerate(cells, start=1):
        insert(
            "capture",
            "capture_id",
            (number,),
            path=f"{number}",
            source="torch",
            status="complete",
            labels={"threads": threads, "channels": channels, "run": str(number)},
        )
        insert(
            "kernel_event",
            "event_id start_ns duration_ns",
            (1, 0, 50),
            (2, 100, 50 + spread),
            capture_id=number,
            kind="kernel",
            name=GEMM,
            device_id=0,
        )
    assert ask(
        """SELECT level, other_level, gemms, runs, mean_ns, median_ns, error_mean_ns FROM v1.gemm_spread_pairs
           WHERE factor = 'threads' AND other_factor = 'channels' ORDER BY level_place, other_place"""
    ) == [
        ("1", "4", 1, 1, 10.0, 10.0, None),
        ("1", "8", 1, 1, 20.0, 20.0, None),
        ("2", "4", 1, 1, 30.0, 30.0, None),
        ("2", "8", 2, 2, 150.0, 150.0, pytest.approx(50.0)),
    ]
