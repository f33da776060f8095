"""Two adjacent malformed events: each is repaired or counted as lost, wherever blocks are cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.both_readers import outcome
from support.readings import read
from support.traces import LAYOUTS, bare_list, document, event_text, kernel, launched, write
from tracedb.errors import ReadError
from tracedb_torch.staging_columns import COLUMNS

EVENTS = launched(5)
FIRST = 7
"""The call of the third launch, whose kernel comes next."""
BLOCKS = (250, 700, 2_000)
Change = tuple[bytes, bytes]
MALFORMED = ("event_unreadable", "event_repaired")
ROWS = ("gpu", "launch", "op")
FIRSTS: dict[str, Change] = {
    "lost": (rb'"name":', rb'"name" 1'),
    "mended": (rb'"cudaLaunchKernel"', rb'"cuda"Launch"Kernel"'),
    "mended in part": (rb'"cbid": ?211', rb'"grid": ["a" b",1], "x": 5'),
}
SECONDS: dict[str, Change] = {
    "no colon after the phase": (rb'"ph":', rb'"ph"11:'),
    "phase with another key": (rb'"ph":(.*"name"):', rb'"p\\xff":\1 1'),
    "no quote before the phase": (rb'"ph":', rb'ph":'),
    "no opening bracket": (rb'\{(\s*"ph":)', rb"\1"),
    "another bracket": (rb'\{(\s*"ph":)', rb"[\1"),
    "something before the bracket": (rb'\{(\s*"ph":.*"name"):', rb"x{\1 1"),
    "no quotes": (rb'"(ph|cat|name|pid)"', rb"\1"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("second", SECONDS.values(), ids=list(SECONDS))
@pytest.mark.parametrize("first", FIRSTS.values(), ids=list(FIRSTS))
def test_two_bad_events_side_by_side_are_both_counted(first: Change, second: Change, layout: str) -> None:
    """Of five launches a call is malformed and so is its kernel; nothing else is touched."""
    texts = [event_text(event, layout) for event in EVENTS]
    for place, (old, new) in ((FIRST, first), (FIRST + 1, second)):
        texts[place], count = re.subn(old, new, texts[place], flags=re.DOTALL)
        assert count
    content = document([*texts], layout)
    whole = outcome(content)
    assert whole["events_read"] == len(EVENTS)
    assert sum(whole["issues"].get(code, {"count": 0})["count"] for code in MALFORMED) == 2
    assert sum(len(rows) for table, rows in whole["rows"].items() if table in ROWS) >= len(EVENTS) - 2
    for block in BLOCKS:
        assert outcome(content, block) == whole


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_bad_event_does_not_take_the_arguments_of_the_next(layout: str) -> None:
    """The first call has no correlation id of its own; the second one has."""
    texts = [event_text(event, layout) for event in EVENTS]
    texts[FIRST] = re.sub(rb'"cbid": ?211.*?\}', b'"grid": ["a" b",1]}', texts[FIRST], flags=re.DOTALL)
    texts[FIRST + 1] = texts[FIRST + 1].replace(b'"ph":', b'"ph"1:')
    rows = outcome(document([*texts], layout))["rows"]
    correlation_id = list(COLUMNS["launch"]).index("correlation_id")
    assert [row[correlation_id] for row in rows["launch"]].count(None) == 1
    assert (len(rows["launch"]), len(rows["gpu"])) == (5, 4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_objects_in_lists_do_not_end_a_malformed_event(layout: str) -> None:
    lists = {"parts": [{"a": 1}, {"b": 2}, {"c": [{"d": 3}, {"e": 4}]}]}
    texts = [event_text(event, layout) for event in (*EVENTS, kernel(900, 1, "last", args=lists))]
    texts[-1] = re.sub(b'"last"', b'"la"s"t"', texts[-1])
    for block in (*BLOCKS, 1 << 20):
        found = outcome(document([*texts], layout), block)
        assert found["events_read"] == len(texts)
        assert {code: issue["count"] for code, issue in found["issues"].items()} == {"event_repaired": 1}


def test_a_bracket_in_a_malformed_event_does_not_end_the_array() -> None:
    """Whether or not a block ends behind it."""
    texts = [event_text(event, "compact") for event in EVENTS]
    texts[FIRST] = texts[FIRST].replace(b'"dur":', b'"dur"')[:-1] + b"]}"
    content = document([*texts], "compact")
    for block in (*BLOCKS, content.index(texts[FIRST]) + len(texts[FIRST]), 1 << 20):
        found = outcome(content, block)
        assert found["events_read"] == len(EVENTS), block
        assert found["issues"]["event_unreadable"]["count"] == 1


def test_events_after_the_end_of_a_bare_list_are_refused(tmp_path: Path) -> None:
    content = bare_list([kernel(1), kernel(2)]) + b', {"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": 1}]'
    with pytest.raises(ReadError, match="events follow the end of the event array"):
        read(write(tmp_path / "x.json", content))
