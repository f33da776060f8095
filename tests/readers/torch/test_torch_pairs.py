"""Begin and end events: each pair gives a row, and events without a counterpart are reported."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from support.both_readers import assert_same, outcome
from support.readings import Reading, read
from support.traces import Event, annotation, call, document, frame, kernel, launched, op, write
from tracedb_torch.decode import begin_end
from tracedb_torch.scan import native_scanner


def begin(event: Event, **changed: Any) -> Event:
    """The beginning of a complete event."""
    return {**{key: value for key, value in event.items() if key != "dur"}, "ph": "B", **changed}


def end(event: Event, *keys: str, **changed: Any) -> Event:
    """The end of a complete event; of its keys only those where the event is, and ``keys``."""
    kept = {key: event[key] for key in ("pid", "tid", *keys)}
    return {"ph": "E", **kept, "ts": event["ts"] + event["dur"], **changed}


def reading(folder: Path, *events: Event, **options: Any) -> Reading:
    return read(write(folder / "x.json", [*launched(1), *events]), **options)


SORTS = [
    kernel(500, 10.001, "k", correlation=9, grid=[1, 2, 3]),
    kernel(500, 10, "Memcpy HtoD", cat="gpu_memcpy", bytes=7),
    call(500, 2.5, 9, external=3),
    op(500, 20, "aten::add", 4, Sequence_number=5),
    annotation(500, 30, "step"),
    frame(500, 30, "train.py(3): f"),
    annotation(500, 30, "step", pid=0, tid=7, cat="gpu_user_annotation"),
]


@pytest.mark.parametrize("event", SORTS, ids=lambda event: event["cat"])
@pytest.mark.parametrize("keys", [("cat", "name", "args"), ("cat",), (), ("name",)])
def test_a_pair_is_what_a_complete_event_is(tmp_path: Path, event: Event, keys: tuple[str, ...]) -> None:
    whole = reading(tmp_path, event, stacks=True)
    pair = reading(tmp_path, begin(event), end(event, *keys), stacks=True)
    for table in ("kernel_event", "launch", "op", "annotation"):
        assert pair.tables.get(table) == whole.tables.get(table)
    assert (pair.status, pair.issues) == ("complete", {"end_events": 1})
    assert (pair.capture["events_read"], pair.capture["events_skipped"]) == (5, 1)


def test_arguments_may_come_with_the_end(tmp_path: Path) -> None:
    whole = kernel(500, 10, "k", correlation=9, grid=[1, 2, 3])
    without = {key: value for key, value in whole.items() if key != "args"}
    for first in (without, {**whole, "args": {"device": 0}}):
        for keys in (("args",), ("cat", "args")):
            found = reading(tmp_path, begin(first), end(whole, *keys))
            assert found.kernels("name", "correlation_id", "grid_y")[1:] == [("k", 9, 2)]
    found = reading(tmp_path, begin(without), end(whole, args={"correlation": "x"}))
    assert (found.kernels("correlation_id")[1:], found.faults) == ([None], {"field_unreadable": 1})


def test_nested_and_crossing_ranges(tmp_path: Path) -> None:
    outer, inner, twin = annotation(500, 100, "a"), annotation(510, 20, "b"), annotation(515, 5, "a")
    other = annotation(505, 200, "c", tid=9)
    events = [begin(outer), begin(other), begin(inner), begin(twin)]
    by_depth = [end(twin), end(inner), end(outer), end(other)]
    by_name = [end(event, "name") for event in (twin, inner, outer, other)]
    crossing = [end(outer, "name", ts=525), end(inner, "name")]
    for ends in (by_depth, by_name):
        found = reading(tmp_path, *events, *ends)
        ranges = [("a", 500_000, 100_000), ("c", 505_000, 200_000), ("b", 510_000, 20_000), ("a", 515_000, 5_000)]
        assert found.rows("annotation", "name", "start_ns", "duration_ns") == ranges
    found = reading(tmp_path, begin(outer), begin(inner), *crossing)
    assert found.rows("annotation", "name", "duration_ns") == [("a", 25_000), ("b", 20_000)]


def test_the_order_of_the_file_does_not_matter(tmp_path: Path) -> None:
    nested = [annotation(500 + i, 100 - 2 * i, f"r{i}") for i in range(20)]
    events = [part for event in nested for part in (begin(event), end(event))]
    in_order = reading(tmp_path, *nested)
    for seed in range(3):
        random.Random(seed).shuffle(events)
        found = reading(tmp_path, *events)
        names = ("name", "start_ns", "duration_ns")
        assert found.rows("annotation", *names) == in_order.rows("annotation", *names)


def test_a_range_without_an_end_is_open(tmp_path: Path) -> None:
    found = reading(tmp_path, begin(annotation(500, 1, "open")))
    assert found.rows("annotation", "name", "duration_ns", "is_open") == [("open", None, True)]
    assert (found.status, found.issues) == ("complete", {})


@pytest.mark.parametrize("event", [SORTS[0], SORTS[2], SORTS[3], SORTS[6]], ids=lambda event: event["cat"])
def test_other_beginnings_without_an_end_are_lost(tmp_path: Path, event: Event) -> None:
    found = reading(tmp_path, begin(event))
    assert (found.status, found.faults) == ("repaired", {"begin_without_end": 1})
    assert found.capture["events_skipped"] == 1


def test_ends_without_a_beginning_are_told_of(tmp_path: Path) -> None:
    strays = [end(SORTS[4]), end(SORTS[4], "cat"), end(SORTS[0], "name", "cat")]
    found = reading(tmp_path, *strays, begin(annotation(900, 9, "other")), end(annotation(900, 9, "other"), name="no"))
    assert found.faults == {"end_without_begin": 4}
    assert found.rows("annotation", "is_open") == [True]


def test_unusable_times(tmp_path: Path) -> None:
    found = reading(tmp_path, begin(SORTS[0], ts="soon"), end(SORTS[0], ts=None))
    assert found.faults == {"timestamp_unusable": 2}


def test_pairs_of_other_categories_do_not_end_ranges(tmp_path: Path) -> None:
    outer, inner, bare = annotation(500, 100, "a"), annotation(510, 20, "b", cat="mine"), annotation(512, 2, "c")
    del bare["cat"]
    found = reading(tmp_path, *map(begin, (outer, inner, bare)), *map(end, (bare, inner, outer)))
    assert found.rows("annotation", "name", "duration_ns") == [("a", 100_000)]
    assert found.faults == {"category_not_stored:mine": 2, "category_missing": 2}
    assert found.capture["events_skipped"] == 5


def test_many_are_matched_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin_end, "MOST", 50)
    spans = [annotation(500 + 10 * i, 9, f"r{i}") for i in range(4000)]
    outer = annotation(499, 100_000, "outer")
    events = [begin(outer), *(part for span in spans for part in (begin(span), end(span))), end(outer)]
    found = reading(tmp_path, *events)
    assert sorted(found.rows("annotation", "duration_ns")) == [9_000] * 4000 + [100_000_000]
    assert found.issues == {"end_events": 4001}


@pytest.mark.skipif(native_scanner.library() is None, reason="the compiled reader was not built")
def test_both_readers_and_every_block(tmp_path: Path) -> None:
    edges = [part for event in SORTS for part in (begin(event), end(event, "args"))]
    content = document([event for edge in [*edges, *edges[::3]] for event in (*launched(1), edge)])
    for block in (600, 3000, 1 << 20):
        assert_same(content, block, stacks=True)
    issues = outcome(document([*launched(1), *edges]), stacks=False)["issues"]
    assert {code: issue["skipped"] for code, issue in issues.items()} == {"end_events": 6, "python_functions": 2}


@pytest.mark.parametrize("phase", ["b", "e", "i", "C", "x"])
def test_other_phases_of_rows_are_told_of(tmp_path: Path, phase: str) -> None:
    found = reading(tmp_path, {**SORTS[4], "ph": phase})
    assert found.faults == {"phase_not_stored": 1}
